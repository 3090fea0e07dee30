"""Sweeps: the list, and one sweep with its overlay and the arms' table."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from server.filters import MOST_RUNS
from server.runs.states import TERMINAL
from server.sweeps import service
from server.sweeps.schemas import SweepRead
from web import reads
from web.arm_order import table_of
from web.arms import Arms
from web.formats import short_difference
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
        best=reads.best_of_sweeps(page.session, [sweep.id for sweep in sweeps]),
        over=TERMINAL,
        next_page=f"/sweeps?cursor={next_cursor}" if next_cursor else None,
        first_page="/sweeps" if cursor else None,
    )


@router.get("/sweeps/{sweep_id}")
def show_sweep(page: AnyPage, sweep_id: str, sort: str | None = None) -> HTMLResponse:
    sweep = service.sweep_read(page.session, service.get_sweep(page.session, sweep_id))
    arms = arms_of(sweep)
    table = table_of(arms, sort, f"/sweeps/{sweep.id}")
    return page.render("sweep.html", sweep=sweep, over=TERMINAL, arms=arms, table=table, most_compared=MOST_RUNS)


def arms_of(sweep: SweepRead) -> Arms:
    """The arms as they were planned; the control's ceiling is that of its first run that has one."""
    return Arms(
        curves=f"/v1/sweeps/{sweep.id}/curves",
        runs=sweep.runs,
        names={run.id: run.name for run in sweep.runs},
        arms={run.id: run.arm or run.name for run in sweep.runs},
        changes={run.id: short_difference(run.changes) or "the base recipe" for run in sweep.runs},
        controls={run.id for run in sweep.runs if run.is_control},
        control=next((run for run in sweep.runs if run.is_control and not run.withheld), None),
        comparison=sweep.comparison,
    )
