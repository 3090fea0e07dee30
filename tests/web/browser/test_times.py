"""Times stand in the zone of who reads them, in tables and within sentences."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from server.dependencies import session_cookie
from tests.web import seeding
from tests.web.browsing import MARKS, Server, Site

pytestmark = MARKS


def test_times_stand_in_the_readers_zone(browser: Any, server: Server, site: Site) -> None:
    begun = datetime(2020, 1, 31, 22, 50, tzinfo=UTC)
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=begun, name="mine", status="queued")
        run.executor = "external"
        path = f"/runs/{run.id}"
    context = browser.browser.new_context(base_url=site.url, timezone_id="Asia/Kolkata", locale="en-GB")
    context.add_cookies([{"name": session_cookie(site.url), "value": server.cookie, "url": site.url}])
    page = context.new_page()
    page.goto(path)
    said = page.locator(".sentence time")
    page.wait_for_function("() => !document.querySelector('.sentence time').textContent.includes('UTC')")
    assert said.inner_text() == "1 Feb 2020, 04:20"
    assert "04:20:00" in said.get_attribute("title")
    assert page.inner_text(".sentence").startswith("Waiting for its first report since 1 Feb 2020, 04:20.")
    context.close()
