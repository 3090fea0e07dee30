"""Tokens and channels: made, tested and removed through the API, listed here."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from server.alerts.channels import list_channels, shown_url
from server.alerts.models import Channel
from web import reads
from web.page import AnyPage

MOST = 200
router = APIRouter(include_in_schema=False)


@router.get("/settings")
def show_settings(page: AnyPage) -> HTMLResponse:
    admin = "admin" in page.identity.allowed
    page_of = list_channels(page.session, cursor=None, limit=MOST) if admin else ([], None)
    channels = reads.newest(page.session, page_of, Channel.enabled.is_(True))
    return page.render(
        "settings.html",
        tokens=reads.living_tokens(page.session, page.now) if admin else [],
        channels=channels,
        urls={channel.id: shown_url(channel) for channel in channels.rows},
        last_tests=reads.last_tests(page.session, channels.rows),
    )
