"""The log of a run's page: loaded when it is opened, followed as it grows, attempt by attempt."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from server.logs.service import keep, note_read
from server.runs.models import Attempt, Run
from tests.web.browsing import MARKS, Site, opened, refreshed
from worker.executors.job_log import JobLog

pytestmark = MARKS

LINES = "() => document.querySelector('#log pre').textContent.split('\\n')"


def printed(
    site: Site, *lines: str, number: int = 1, whole: bool = False, first: int = 0, unfinished: str = ""
) -> None:
    with site.sessions.begin() as session:
        attempt = session.scalar(select(Attempt).where(Attempt.run_id == site.control, Attempt.number == number))
        if attempt is None:
            attempt = Attempt(run_id=site.control, number=number, created_at=site.now)
            session.add(attempt)
            session.get_one(Run, site.control).attempt = number
            session.flush()
        attempt.external_ref = f"{site.control}-a{number}"
        note_read(session, [attempt.id], site.now, 0.01)
        keep(session, attempt.id, JobLog(first, lines, unfinished), whole=whole)


def reads(page: Any, *lines: str) -> None:
    page.wait_for_function(f"(lines) => JSON.stringify(({LINES})()) === JSON.stringify(lines)", arg=list(lines))


def said(page: Any) -> str:
    return str(page.inner_text("#log [data-said]"))


@pytest.fixture
def log(page: Any, site: Site) -> Any:
    """The page with the log open, which two lines were printed to."""
    printed(site, "step 0", "<b>step</b> 1")
    opened(page, f"/runs/{site.control}")
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/logs" in request.url else None)
    page.click("#log summary")
    reads(page, "step 0", "<b>step</b> 1")
    assert len(asked) == 1  # nothing before it was opened
    return page


def test_a_log_is_shown_and_followed_while_it_is_open(log: Any, site: Site) -> None:
    assert said(log) == "Attempt 1, 2 lines; more is shown as it comes"
    printed(site, "step 0", "<b>step</b> 1", "step 2")
    reads(log, "step 0", "<b>step</b> 1", "step 2")
    printed(site, "step 0", "<b>step</b> 1", "step 2", "succeeded", whole=True)
    log.wait_for_function("() => document.querySelector('#log [data-said]').textContent === 'Attempt 1, 4 lines'")
    assert log.is_hidden("#log select")


def test_which_log_is_open_stands_in_the_url(log: Any, site: Site) -> None:
    assert log.url.endswith("?log=newest")
    log.reload()
    reads(log, "step 0", "<b>step</b> 1")
    log.click("#log summary")
    log.wait_for_function("() => !location.search")


def test_another_attempt_takes_the_place_of_the_newest(log: Any, site: Site) -> None:
    printed(site, "step 0", "killed", whole=True)
    printed(site, "from step 1", number=2, whole=True)
    refreshed(log)
    reads(log, "from step 1")
    log.select_option("#log select", "1")
    reads(log, "step 0", "<b>step</b> 1")
    assert log.url.endswith("?log=1")
    log.reload()
    reads(log, "step 0", "<b>step</b> 1")
    assert log.input_value("#log select") == "1"
    log.select_option("#log select", "newest")
    reads(log, "from step 1")


def test_each_attempt_leads_to_its_log(page: Any, site: Site) -> None:
    printed(site, "first", whole=True)
    printed(site, "second", number=2, whole=True)
    opened(page, f"/runs/{site.control}")
    page.click(f"a[href$='{site.control}?log=1#log']")
    reads(page, "first")


def test_what_is_not_kept_is_said(page: Any, site: Site) -> None:
    printed(site, "late", first=1200, whole=True)
    opened(page, f"/runs/{site.control}?log=newest")
    reads(page, "late")
    assert said(page) == "Attempt 1, 1 line, without the 1,200 before"


def test_a_log_that_cannot_be_loaded_says_so_and_comes_later(page: Any, site: Site, faults: list[str]) -> None:
    printed(site, "step 0")
    opened(page, f"/runs/{site.control}")
    page.route("**/logs?*", lambda route: route.abort())
    page.click("#log summary")
    page.wait_for_selector("#log [data-log-error]:not([hidden])")
    assert "does not answer" in page.inner_text("#log [data-log-error]")
    page.unroute("**/logs?*")
    reads(page, "step 0")
    assert page.is_hidden("#log [data-log-error]")
    faults.clear()


def test_a_gap_is_no_line_beside_the_next_and_a_progress_bar_is_shown(log: Any, site: Site) -> None:
    log.click("#log summary")  # closed while thousands of lines come
    printed(site, "step 5000", first=5000, unfinished="10 %|#   |")
    log.click("#log summary")
    reads(log, "step 5000", "10 %|#   |")
    assert said(log) == "Attempt 1, 2 lines, without the 5,000 before; more is shown as it comes"


@pytest.mark.parametrize("asked", ["2e7", "Infinity", "2.5", "-1", "12345", "<b>"])
def test_whatever_stands_in_the_address_opens_a_log(page: Any, site: Site, asked: str) -> None:
    printed(site, "step 0", whole=True)
    opened(page, f"/runs/{site.control}?log={asked}")
    reads(page, "step 0")
    assert page.input_value("#log select") == "newest"
