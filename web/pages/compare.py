"""Any runs held against one of them. Which, and which is the control, stands in the URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from server.comparisons.checks import misfits
from server.comparisons.grouping import run_names
from server.comparisons.recipes import recipes_of
from server.comparisons.schemas import RunsComparison
from server.comparisons.service import compare_runs, control_of
from server.filters import MOST_RUNS, some_runs
from server.problems import Unavailable
from server.runs.models import Run
from web import reads
from web.arm_order import ordered, table_of
from web.arms import Arms
from web.formats import short_difference
from web.page import AnyPage, Page

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Part:
    """Runs that can be compared with one another, where not all of those chosen can."""

    names: dict[str, str]  # by run
    why: str  # it is not judged as the control is; empty for the control's own
    href: str | None  # none for a single run


@router.get("/compare")
def show_comparison(
    page: AnyPage,
    run: Annotated[list[str] | None, Query()] = None,
    run_id: Annotated[list[str] | None, Query()] = None,  # as the API has it
    control: str | None = None,
    sort: str | None = None,
) -> HTMLResponse:
    asked = list(dict.fromkeys([*(run or []), *(run_id or [])]))
    if len(asked) > MOST_RUNS:
        first = compare_url(asked[:MOST_RUNS], control)
        answer = page.render("compare_many.html", asked=asked, most=MOST_RUNS, first=first)
        answer.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
        return answer
    runs = some_runs(page.session, asked)
    if len(runs) < 2:
        return page.render("compare_none.html", runs=runs, most=MOST_RUNS, parts_of=[], busy=None)
    against = control_of(runs, control or None)
    parts = _parts(page, runs, against)
    if len(parts) > 1:
        return page.render("compare_none.html", runs=runs, most=MOST_RUNS, parts_of=parts, busy=None)
    try:
        found = compare_runs(page.session, runs, against, page.now)
    except Unavailable as busy:
        return page.render("compare_none.html", runs=runs, most=MOST_RUNS, parts_of=[], busy=busy.detail)
    asked, arms = [one.id for one in runs], arms_of(found, sort)
    kept = [*(("run", id_) for id_ in asked), *([("control", control)] if control else [])]
    return page.render(
        "compare.html",
        found=found,
        arms=arms,
        errors=reads.errors_of(page.session, runs),
        table=table_of(arms, ordered(arms, sort), sort, "/compare", kept),
        asked=asked,
        most=MOST_RUNS,
        fields=_fields(found),
    )


def compare_url(run_ids: Sequence[str], control: str | None = None, sort: str | None = None) -> str:
    """Where these runs are compared."""
    kept = [*([("control", control)] if control in run_ids else []), *([("sort", sort)] if sort else [])]
    return f"/compare?{urlencode([*(('run', run_id) for run_id in run_ids), *kept])}"


def arms_of(found: RunsComparison, sort: str | None = None) -> Arms:
    """The chosen runs as arms, the control's first."""
    ids = [run.id for run in found.runs]
    others = {id_: [one for one in ids if one != id_] for id_ in ids}
    return Arms(
        curves=f"/v1/runs:curves?frozen=false&{urlencode([('run_id', id_) for id_ in ids])}",
        runs=found.runs,
        names=found.names,
        arms=found.arms,
        changes={id_: _change(found, id_) for id_ in ids},
        controls={found.control}
        | {id_ for id_ in ids if found.arms[id_] == found.arms[found.control] and id_ not in found.left_out},
        control=next((run for run in found.runs if run.id == found.control), None),
        comparison=found.comparison,
        left_out=found.left_out,
        remove={id_: compare_url(kept, found.control, sort) for id_, kept in others.items()},
    )


def _change(found: RunsComparison, run_id: str) -> str:
    """What differs from the control's recipe, in a few words."""
    if run_id in found.without_recipe:
        return "reported without a recipe"
    if run_id == found.control:
        return "the control"
    if found.control in found.without_recipe:
        return ""
    changed = {
        one.field: one.values[run_id]
        for one in found.differences
        if run_id in one.values and one.values[run_id] != one.values.get(found.control)
    }
    seed = changed.pop("seed", None)
    return short_difference(changed) or ("the control’s recipe" if seed is None else f"seed {seed}")


def _fields(found: RunsComparison) -> list[tuple[str, list[tuple[Any, bool, bool]]]]:
    """Each differing field with its cells: the value, whether there is one, whether it is not the control's."""
    told = [run.id for run in found.runs if run.id not in found.without_recipe]
    rows = []
    for one in found.differences:
        control = one.values.get(found.control)
        cells = [(one.values.get(id_), id_ in one.values, one.values.get(id_) != control) for id_ in told]
        rows.append((one.field, cells))
    return rows


def _parts(page: Page, runs: Sequence[Run], control: Run) -> list[Part]:
    """The runs parted into those that can be compared, the control's first."""
    recipes, names = recipes_of(page.session, runs), run_names(page.session, runs)
    reasons = misfits(runs, control, recipes)
    parts: list[Part] = []
    left, first, why = list(runs), control, ""
    while left:
        unlike = misfits(left, first, recipes)
        alike = [run for run in left if run.id not in unlike]
        href = compare_url([run.id for run in alike], first.id) if len(alike) > 1 else None
        parts.append(Part({run.id: names[run.id] for run in alike}, why, href))
        left = [run for run in left if run.id in unlike]
        if left:
            first, why = left[0], reasons[left[0].id]
    return parts
