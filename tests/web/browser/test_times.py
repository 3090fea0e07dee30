"""Times stand in the zone of who reads them, in tables and within sentences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from server.dependencies import session_cookie
from server.metrics.models import Evaluation
from server.runs.models import Run
from tests.web import seeding
from tests.web.browsing import MARKS, Server, Site, opened

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


def test_how_long_is_left_is_counted_down(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        mine = select(Evaluation).where(Evaluation.run_id == site.control).order_by(Evaluation.step.desc())
        newest = session.scalars(mine).all()
        for back, one in enumerate(newest):
            one.time = site.now - timedelta(minutes=back)
        run = session.get_one(Run, site.control)
        run.budget_compute = newest[0].compute + 90 * (newest[0].compute - newest[1].compute)
    opened(page, f"/runs/{site.control}")
    left = page.locator(".facts time")
    page.wait_for_function("() => document.querySelector('.facts time').title.includes(':')")
    assert left.inner_text() in ("90 min left", "89 min left")  # rounded, of a time that goes on
    page.evaluate(
        """() => {
            const time = document.querySelector(".facts time");
            time.dateTime = new Date(Date.now() - 1000).toISOString();
            document.dispatchEvent(new Event("htmx:after:swap"));
        }"""
    )
    assert left.inner_text() == "any moment"
