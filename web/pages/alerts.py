"""The inbox: alerts of every run, or of one, what was sent where."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from server.alerts.service import list_alerts as list_of_alerts
from server.runs.service import get_run
from web import reads
from web.page import AnyPage

PER_PAGE = 50
router = APIRouter(include_in_schema=False)


@router.get("/alerts")
def list_alerts(page: AnyPage, show: str = "open", run: str | None = None, cursor: str | None = None) -> HTMLResponse:
    of_run = get_run(page.session, run) if run else None
    only_open = None if show == "all" else True
    alerts, next_cursor = list_of_alerts(
        page.session, run_id=of_run.id if of_run else None, is_open=only_open, cursor=cursor, limit=PER_PAGE
    )
    lines = reads.with_deliveries(page.session, alerts)
    kept = {"run": of_run.id} if of_run else {}
    return page.render(
        "alerts.html",
        lines=lines,
        of_run=of_run,
        show_all=show == "all",
        channels=reads.there_is_a_channel(page.session),
        resolved=0 if lines else reads.resolved_alerts(page.session, of_run),
        open_only=_url(kept),
        with_resolved=_url(kept | {"show": "all"}),
        next_page=_url(kept | {"show": show, "cursor": next_cursor}) if next_cursor else None,
        first_page=_url(kept | {"show": show}) if cursor else None,
    )


def _url(parameters: dict[str, str]) -> str:
    return f"/alerts?{urlencode(parameters)}" if parameters else "/alerts"
