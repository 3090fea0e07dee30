"""How good the forecasts were: a sentence, the ranges of what the runs had spent, every forecast against what came."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from server.forecasts.track_lines import track_view
from server.forecasts.track_record import told
from server.sweeps.service import get_sweep
from web import reads
from web.page import AnyPage

MOST_LISTED = 100  # forecasts one by one; the chart has as many as the API gives, the table of ranges counts all
MOST_RUNS = 100
router = APIRouter(include_in_schema=False)


@router.get("/track-record")
def show_track_record(page: AnyPage, sweep: str | None = None) -> HTMLResponse:
    chosen = get_sweep(page.session, sweep) if sweep else None
    found = told(page.session, sweep_id=chosen.id if chosen else None, runs=MOST_RUNS)
    return page.render(
        "track_record.html",
        record=track_view(found, limit=MOST_LISTED),
        runs=len({one.forecast.run for one in found.record.scored}),
        chosen=chosen,
        sweeps=reads.sweeps_to_choose(page.session, chosen),
        most_runs=MOST_RUNS,
    )
