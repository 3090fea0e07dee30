"""The settings page in a real browser: a test of a channel, and how it went, in its row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from server.access.service import mint
from server.alerts.models import Delivery
from server.dependencies import session_cookie
from server.settings import Settings
from tests.server.forecasts.seeds import make_channel
from tests.web.browsing import MARKS, Server, Site
from tests.worker.receiver import receiving
from worker.notify import deliver

pytestmark = MARKS


@pytest.fixture
def administrator(page: Any, site: Site, server: Server) -> Iterator[Any]:
    """The tab, logged in as somebody who may do everything."""
    with site.sessions.begin() as session:
        _, cookie = mint(session, kind="session", name="an admin", scopes=["admin"], now=datetime.now(UTC))
    page.context.add_cookies([{"name": session_cookie(site.url), "value": cookie, "url": site.url}])
    yield page
    page.context.add_cookies([{"name": session_cookie(site.url), "value": server.cookie, "url": site.url}])


def test_a_test_of_a_channel_tells_in_its_row_how_it_went(administrator: Any, site: Site, tmp_path: Path) -> None:
    page = administrator
    settings = Settings(DATABASE_URL="postgresql://unused", data_dir=tmp_path, allow_private_webhooks=True)
    with receiving((200, {}, b"ok")) as receiver:
        with site.sessions.begin() as session:
            channel = make_channel(session, receiver.url).id
        page.goto("/settings")
        page.wait_for_selector("[data-live-sign][data-state=live]")
        page.click(f"button[data-action='/v1/channels/{channel}:test']")
        page.wait_for_selector(f"#test-{channel}:has-text('on its way')")
        assert page.evaluate("() => document.activeElement.textContent") == "Send a test"
        with site.sessions() as session:
            sent = session.scalars(select(Delivery.id).where(Delivery.channel_id == channel)).one()
        deliver(site.sessions, settings, sent, datetime.now(UTC))
        page.wait_for_selector(f"#test-{channel}:has-text('delivered')")
    assert len(receiver.got) == 1


def test_a_token_may_be_made_for_a_while(administrator: Any, site: Site) -> None:
    page = administrator
    page.goto("/settings")
    for name, lasts, expires in (("for a month", "in 30 days", "in 30 d"), ("for ever", "never", "never")):
        page.fill("#new-token [name=name]", name)
        page.select_option("#new-token [name=expires_in_s]", label=lasts)
        page.click("#new-token .primary")
        row = page.locator("tr", has_text=name)
        row.wait_for()
        assert row.locator("[data-label=Expires]").inner_text().startswith(expires)
    secret = page.locator("#new-token [data-secret] code")
    secret.click()  # one press marks it whole
    assert page.evaluate("() => getSelection().toString()") == secret.inner_text()


def test_a_form_that_no_script_takes_yet_keeps_what_is_secret(administrator: Any, faults: list[str]) -> None:
    page = administrator
    page.route("**/js/main.js", lambda route: route.abort())
    page.goto("/settings")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    page.fill("#new-channel [name=name]", "mine")
    page.fill("#new-channel [name=url]", "https://hooks.example.com/services/secret")
    page.click("#new-channel .primary")
    page.evaluate("() => new Promise((done) => setTimeout(done))")
    assert (sent, page.url.partition("/settings")[2]) == ([], "")
    assert page.input_value("#new-channel [name=url]").endswith("secret")
    faults.clear()
