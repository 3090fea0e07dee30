"""Sweeps: the list, and one sweep with its overlay and the arms' table."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from server.comparisons.find import too_many
from server.filters import MOST_RUNS
from server.runs.service import get_runs
from server.runs.states import TERMINAL
from server.runs.views import run_views
from server.sweeps import service
from server.sweeps.service import SweepOutline
from web import reads
from web.arm_order import ordered, table_of
from web.arms import Arms
from web.formats import short_difference
from web.large_sweeps import Drawing, drawing_of, part_of
from web.page import AnyPage
from web.shared_compute import MOST_TOLD, shared_by

PER_PAGE = 50
router = APIRouter(include_in_schema=False)


@router.get("/sweeps")
def list_sweeps(
    page: AnyPage, tag: str | None = None, archived: bool = False, cursor: str | None = None
) -> HTMLResponse:
    tags = [tag] if tag else []
    sweeps, next_cursor = service.list_sweeps(page.session, tags=tags, archived=archived, cursor=cursor, limit=PER_PAGE)
    kept = ({"tag": tag} if tag else {}) | ({"archived": "true"} if archived else {})
    return page.render(
        "sweeps.html",
        sweeps=service.sweep_summaries(page.session, sweeps),
        alerts=reads.open_alerts_by_sweep(page.session, [sweep.id for sweep in sweeps]),
        best=reads.best_of_sweeps(page.session, [sweep.id for sweep in sweeps]),
        over=TERMINAL,
        tag=tag,
        archived=archived,
        put_away=archived or reads.there_is_an_archived_sweep(page.session),
        next_page=_url({**kept, "cursor": next_cursor}) if next_cursor else None,
        first_page=_url(kept) if cursor else None,
    )


def _url(parameters: dict[str, str]) -> str:
    return f"/sweeps?{urlencode(parameters)}" if parameters else "/sweeps"


@router.get("/sweeps/{sweep_id}")
def show_sweep(
    page: AnyPage,
    sweep_id: str,
    sort: str | None = None,
    text: str | None = None,
    show: str | None = None,
    drawn: str | None = None,
    cursor: str | None = None,
) -> HTMLResponse:
    found = service.sweep_outline(page.session, service.get_sweep(page.session, sweep_id), page.now)
    drawing = drawing_of(found, show, drawn)
    arms = arms_of(found, drawing)
    path = f"/sweeps/{sweep_id}"
    kept = [(name, value) for name, value in (("text", text), ("show", drawing.asked)) if value]
    part = part_of(ordered(arms, sort), text, cursor, path, [*kept, *([("sort", sort)] if sort else [])])
    rows = run_views(page.session, get_runs(page.session, [run.id for run in part.runs]))
    changes = {run.id: short_difference(run.changes) or "the base recipe" for run in rows}
    return page.render(
        "sweep.html",
        found=found,
        sweep=found.sweep,
        arms=replace(arms, changes=changes),
        errors=reads.errors_of(page.session, rows),
        table=table_of(arms, rows, sort, path, kept),
        part=part,
        place={name: value for name, value in (("text", text), ("sort", sort), ("cursor", cursor)) if value},
        drawing=drawing,
        most_compared=MOST_RUNS,
        shared=shared_by(page.session, found),
        most_told=MOST_TOLD,
    )


def arms_of(found: SweepOutline, drawing: Drawing) -> Arms:
    """The arms as they were planned; the control's ceiling is that of its first run that has one."""
    return Arms(
        curves=drawing.curves,
        runs=found.runs,
        drawn=drawing.runs,
        names={run.id: run.name for run in found.runs},
        arms={run.id: run.arm or run.name for run in found.runs},
        changes={},  # told in the table alone, of which a page has a part
        controls={run.id for run in found.runs if run.is_control},
        control=next((run for run in found.runs if run.is_control and not run.withheld), None),
        comparison=found.comparison,
        uncompared="too many runs" if too_many(len(found.runs)) else "",
    )
