"""Tokens and channels: made, tested and removed through the API, listed here."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from server.alerts.channels import list_channels, shown_url
from web import reads
from web.page import AnyPage

MOST = 200
router = APIRouter(include_in_schema=False)


@router.get("/settings")
def show_settings(page: AnyPage) -> HTMLResponse:
    admin = "admin" in page.identity.allowed
    channels = list_channels(page.session, cursor=None, limit=MOST)[0] if admin else []
    return page.render(
        "settings.html",
        tokens=reads.living_tokens(page.session, page.now) if admin else [],
        channels=[(channel, shown_url(channel)) for channel in channels],
        last_tests=reads.last_tests(page.session, channels),
    )
