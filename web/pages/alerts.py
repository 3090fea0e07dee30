"""The inbox: alerts of every run, what was sent where."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from server.alerts.service import list_alerts as list_of_alerts
from web import reads
from web.page import AnyPage

PER_PAGE = 50
router = APIRouter(include_in_schema=False)


@router.get("/alerts")
def list_alerts(page: AnyPage, show: str = "open", cursor: str | None = None) -> HTMLResponse:
    only_open = None if show == "all" else True
    alerts, next_cursor = list_of_alerts(page.session, run_id=None, is_open=only_open, cursor=cursor, limit=PER_PAGE)
    lines = reads.with_deliveries(page.session, alerts)
    next_page = f"/alerts?{urlencode({'show': show, 'cursor': next_cursor})}" if next_cursor else None
    first_page = f"/alerts?{urlencode({'show': show})}" if cursor else None
    return page.render(
        "alerts.html",
        lines=lines,
        show_all=show == "all",
        channels=reads.there_is_a_channel(page.session),
        resolved=0 if lines else reads.resolved_alerts(page.session),
        next_page=next_page,
        first_page=first_page,
    )
