"""The list of runs: where each stands, where it will end, what to do."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, RedirectResponse

from server.dependencies import AppSettings
from server.filters import MOST_RUNS
from server.runs.views import run_views
from server.sweeps.service import get_sweep
from web import reads
from web.drawings import rate_range
from web.ordering import COLUMNS, ORDERS, heads, offered, sorted_page
from web.page import AnyPage

PER_PAGE = 50
router = APIRouter(include_in_schema=False)


@router.get("/mlflow")
@router.get("/mlflow/")
def find_run() -> RedirectResponse:
    """Where MLflow's client says that a run is to be seen; which one is behind `#`, where `elsewhere.js` reads it."""
    return RedirectResponse("/runs")


@router.get("/")
@router.get("/runs")
def list_runs(
    page: AnyPage,
    settings: AppSettings,
    state: str | None = None,
    sweep: str | None = None,
    text: str | None = None,
    tag: str | None = None,
    sort: str | None = None,
    run: Annotated[list[str] | None, Query()] = None,
    cursor: str | None = None,
) -> HTMLResponse:
    of_sweep = get_sweep(page.session, sweep) if sweep else None
    chosen = reads.RunFilter(state=state or None, sweep=sweep or None, text=text or None, tag=tag or None)
    query = reads.filtered_runs(chosen)
    runs, next_cursor = sorted_page(page.session, query, sort, cursor, PER_PAGE)
    sparks = reads.sparks_of(page.session, runs)
    filters = {name: value for name, value in vars(chosen).items() if value}
    ticked = reads.there_are(page.session, run or [])
    kept = filters | ({"sort": sort} if sort else {}) | ({"run": ticked} if ticked else {})
    return page.render(
        "runs.html",
        runs=run_views(page.session, runs),
        errors=reads.errors_of(page.session, runs),
        sparks=sparks,
        spark_range=rate_range(sparks.values()),
        count=reads.count_of(page.session, query),
        chosen=chosen,
        sort=sort or "",
        orders=offered(ORDERS, sort or ""),
        heads=heads(COLUMNS, sort, lambda order: _url(kept | {"sort": order})),
        ticked=ticked,
        most_compared=MOST_RUNS,
        states=reads.STATES,
        tags=reads.tags_to_choose(page.session, chosen),
        sweeps=reads.sweeps_to_choose(page.session, of_sweep),
        next_page=_url({**kept, "cursor": next_cursor}) if next_cursor else None,
        first_page=_url(kept) if cursor else None,
        public_url=settings.public_url,
    )


def _url(parameters: dict[str, Any]) -> str:
    return f"/runs?{urlencode(parameters, doseq=True)}"
