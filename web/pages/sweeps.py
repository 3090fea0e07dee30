"""Sweeps: the list, and one sweep with its overlay and the arms' table."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from server.runs.schemas import RunView
from server.runs.states import TERMINAL
from server.sweeps import service
from server.sweeps.schemas import ArmVerdictView, RankView, SweepRead
from web import reads
from web.drawings import bar_range
from web.page import AnyPage

PER_PAGE = 50
router = APIRouter(include_in_schema=False)


@router.get("/sweeps")
def list_sweeps(page: AnyPage, cursor: str | None = None) -> HTMLResponse:
    sweeps, next_cursor = service.list_sweeps(page.session, cursor=cursor, limit=PER_PAGE)
    return page.render(
        "sweeps.html",
        sweeps=service.sweep_summaries(page.session, sweeps),
        alerts=reads.open_alerts_by_sweep(page.session, [sweep.id for sweep in sweeps]),
        over=TERMINAL,
        next_page=f"/sweeps?cursor={next_cursor}" if next_cursor else None,
        first_page="/sweeps" if cursor else None,
    )


@router.get("/sweeps/{sweep_id}")
def show_sweep(page: AnyPage, sweep_id: str) -> HTMLResponse:
    sweep = service.sweep_read(page.session, service.get_sweep(page.session, sweep_id))
    control = next((run for run in sweep.runs if run.is_control and not run.withheld), None)
    series = series_of(sweep.runs)
    return page.render(
        "sweep.html",
        sweep=sweep,
        over=TERMINAL,
        control=control.ceiling if control else None,
        bounds=bar_range([run.ceiling for run in sweep.runs if not run.withheld]),
        series=series,
        series_json=json.dumps(series),
        verdicts=verdicts_of(sweep),
        ranks=ranks_of(sweep),
        first_of_arm=first_of_arm(sweep.runs),
    )


def verdicts_of(sweep: SweepRead) -> dict[str, ArmVerdictView | None]:
    """Run to what its arm changed; None where it has not been compared."""
    found = {arm.arm: arm for arm in sweep.comparison.arms} if sweep.comparison else {}
    return {run.id: found.get(run.arm or run.name) for run in sweep.runs}


def ranks_of(sweep: SweepRead) -> dict[str, RankView | None]:
    """Run to where its arm stands among the others; None where that is not known."""
    ranking = sweep.comparison.ranking if sweep.comparison else None
    found = {one.arm: one for one in ranking.arms} if ranking and len(ranking.arms) > 1 else {}
    return {run.id: found.get(run.arm or run.name) for run in sweep.runs}


def first_of_arm(runs: Sequence[RunView]) -> set[str]:
    """The first run of each arm: its row has the figures of the verdict, those of the arm's other seeds its name."""
    firsts: dict[str, str] = {}
    for run in runs:
        firsts.setdefault(run.arm or run.name, run.id)
    return set(firsts.values())


def series_of(runs: Sequence[RunView]) -> dict[str, int | None]:
    """Run to its colour: arms are numbered as they come, all seeds of an arm alike; the control has none (neutral)."""
    arms: dict[str, int] = {}
    for run in runs:
        if not run.is_control:
            arms.setdefault(run.arm or run.name, len(arms))
    return {run.id: None if run.is_control else arms[run.arm or run.name] for run in runs}
