"""What a person is doing on a page goes on as it began, whatever comes in live meanwhile, or does not come."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from server.events.service import record
from server.runs.models import Attempt, Run
from tests.web import seeding
from tests.web.browsing import MARKS, TRUTH, Site, opened, refreshed

pytestmark = MARKS
LIVE = "[data-live-sign][data-state=live]"


def change(site: Site, run_id: str, **values: Any) -> None:
    """Something happens to a run, and pages hear of it."""
    with site.sessions.begin() as session:
        run = session.get_one(Run, run_id)
        for name, value in values.items():
            setattr(run, name, value)
        record(session, "run.status", actor="reconciler", run_id=run.id, sweep_id=run.sweep_id, to_state=run.status)


def answer(route: Any, words: str) -> None:
    body = json.dumps({"title": "no", "detail": words})
    route.fulfill(status=409, content_type="application/problem+json", body=body)


def test_a_dialog_does_what_it_asked_though_the_button_has_become_another(
    page: Any, site: Site, faults: list[str]
) -> None:
    sent: list[str] = []
    page.on("request", lambda asked: asked.method == "POST" and sent.append(asked.url.rpartition(":")[2]))
    opened(page, f"/runs/{site.control}")
    page.wait_for_selector(LIVE)
    page.click("button[data-action$=':pause']")
    assert "Pause control?" in page.inner_text("dialog [data-text]")
    change(site, site.control, status="succeeded", finished_at=site.now)
    page.wait_for_selector("button[data-action$=':archive']", state="attached")
    page.click("dialog [value=yes]")
    page.wait_for_selector("dialog [data-error]:not([hidden])")
    assert sent == ["pause"]
    with site.sessions() as session:
        assert session.get_one(Run, site.control).archived_at is None
    faults.clear()  # the browser itself says that the request was refused


def test_the_keyboards_place_in_the_bar_stays_over_a_refresh(page: Any, site: Site) -> None:
    page.goto("/runs")
    page.wait_for_selector(LIVE)
    page.focus("#nav a[href='/settings']")
    refreshed(page)
    assert page.evaluate("() => document.activeElement.textContent.trim()") == "Settings"


@pytest.fixture
def empty_list(page: Any, site: Site) -> Iterator[Any]:
    """The page of a list without a run."""
    with site.sessions.begin() as session:
        hidden = [run.id for run in session.scalars(select(Run).where(Run.archived_at.is_(None)))]
        for run_id in hidden:
            session.get_one(Run, run_id).archived_at = site.now
    page.goto("/runs")
    page.wait_for_selector(LIVE)
    assert page.locator(".tick").count() == 0
    yield page
    with site.sessions.begin() as session:
        for run_id in hidden:
            session.get_one(Run, run_id).archived_at = None


def test_a_command_to_copy_has_the_address_by_which_the_browser_came(empty_list: Any, site: Site) -> None:
    command = empty_list.locator(".command", has_text="FORECURVE_URL")
    assert command.inner_text() == f"export FORECURVE_URL={site.url} FORECURVE_TOKEN=…"
    refreshed(empty_list)
    assert command.inner_text() == f"export FORECURVE_URL={site.url} FORECURVE_TOKEN=…"


def test_runs_that_come_to_an_empty_list_can_be_ticked(empty_list: Any, site: Site) -> None:
    page = empty_list
    with site.sessions.begin() as session:
        came = [seeding.add_run(session, now=site.now, name=name, changes={}).id for name in ("first", "second")]
        for run_id in came:
            seeding.add_evaluations(session, session.get_one(Run, run_id), TRUTH, until=10, now=site.now)
    for run_id in came:
        page.check(f".tick[value='{run_id}']")
    page.wait_for_selector("#ticked:not([hidden])")
    assert "2 ticked" in page.inner_text("#ticked")


def test_a_refresh_that_fails_is_said_and_tried_again(page: Any, site: Site, faults: list[str]) -> None:
    opened(page, f"/runs/{site.control}")
    page.wait_for_selector(LIVE)
    fails = {"left": 1}

    def once(route: Any) -> None:
        if fails["left"] and route.request.headers.get("hx-request"):
            fails["left"] -= 1
            return route.fulfill(status=503, body="not now")
        return route.continue_()

    page.route(f"**/runs/{site.control}", once)
    change(site, site.control, status="succeeded", finished_at=site.now)
    page.wait_for_selector("[data-live-sign][data-state='not refreshed']")
    page.wait_for_selector("button[data-action$=':archive']")  # nothing more has happened that would ask for it
    page.wait_for_selector(LIVE)
    faults.clear()


def test_a_chart_is_laid_out_anew_when_the_window_changes(page: Any, site: Site) -> None:
    opened(page, f"/sweeps/{site.sweep}")
    margin = "() => document.querySelector('[data-chart]')._fullLayout.margin.r"
    wide = page.evaluate(margin)
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function(f"() => ({margin})() < {wide} / 2")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.wait_for_function(f"() => ({margin})() === {wide}")


def test_a_dialog_that_waits_for_its_answer_is_not_closed_by_escape_and_says_it(
    page: Any, site: Site, faults: list[str]
) -> None:
    opened(page, f"/runs/{site.control}")
    held: list[Any] = []
    page.route("**/v1/runs/*:stop", lambda route: held.append(route))
    page.click("button[data-action$=':stop']")
    with page.expect_request("**/v1/runs/*:stop"):  # the page waits from before it has left
        page.click("dialog [value=yes]")
    page.wait_for_selector("dialog [value=yes][aria-disabled]")
    page.keyboard.press("Escape")
    assert page.evaluate("() => document.getElementById('confirm').open")
    answer(held[0], "The run cannot be stopped.")
    page.wait_for_selector("dialog [data-error]:not([hidden])")
    assert "cannot be stopped" in page.inner_text("dialog [data-error]")
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.getElementById('confirm').open")
    faults.clear()


def test_alt_and_an_arrow_is_left_to_the_browser(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    page.evaluate("() => addEventListener('keydown', (event) => { window.prevented = event.defaultPrevented })")
    page.focus("[data-chart]")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("() => window.prevented") is True
    page.evaluate("() => history.pushState(null, '', location.href)")  # a step to go back to
    page.keyboard.press("Alt+ArrowLeft")
    assert page.evaluate("() => window.prevented") is False


@pytest.mark.slow
def test_what_was_opened_stays_open_when_more_comes(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        attempt = session.scalars(select(Attempt).where(Attempt.run_id == site.control)).one()
        attempt.log_tail, attempt.outcome = "the last line of attempt 1", "lost"
    opened(page, f"/runs/{site.control}")
    page.wait_for_selector(LIVE)
    page.click("text=Last lines of its log")
    with site.sessions.begin() as session:
        session.add(Attempt(run_id=site.control, number=2, created_at=site.now, log_tail="of attempt 2"))
    change(site, site.control, attempt=2)
    page.wait_for_selector("#log-2", state="attached")
    assert page.evaluate("() => [1, 2].map((at) => document.getElementById(`log-${at}`).open)") == [True, False]
