"""Buttons, dialogs and the event stream in a real browser: what a person presses, and where they are afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from server.alerts.service import open_alert
from server.checkpoints.models import Checkpoint
from server.events.service import record
from server.runs.models import Run
from server.sweeps.models import Sweep
from tests.web import seeding
from tests.web.browsing import MARKS, TRUTH, Site, opened, refreshed

pytestmark = MARKS
SEEN = """(hidden) => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
                        document.dispatchEvent(new Event('visibilitychange')) }"""


def test_a_refused_name_stays_in_the_dialog_with_what_is_wrong_with_it(
    page: Any, site: Site, faults: list[str]
) -> None:
    opened(page, f"/runs/{site.control}")
    page.click("text=Rename")
    assert page.get_attribute("dialog input", "maxlength") == "200"
    page.fill("dialog input", "   ")
    page.keyboard.press("Enter")
    assert (
        page.evaluate("() => document.querySelector('dialog input').validationMessage") == "Some text is needed here."
    )
    page.fill("dialog input", "a")
    page.evaluate("() => { document.querySelector('dialog input').value = 'n'.repeat(201) }")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog [data-error]:not([hidden])")
    assert "200 characters" in page.inner_text("dialog [data-error]")
    assert page.input_value("dialog input") == "n" * 201
    page.fill("dialog input", "a better name")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('a better name')")
    assert page.is_hidden("dialog")
    faults[:] = [fault for fault in faults if "422" not in fault]  # the browser's own note of the refusal


def test_the_keyboard_stays_on_the_page_after_what_was_pressed_is_gone(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        session.get_one(Run, site.control).status = "paused"
        session.get_one(Run, site.control).desired_state = "pause"
    opened(page, f"/runs/{site.control}")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    page.focus("button[data-action$=':resume']")
    page.keyboard.press("Enter")
    page.wait_for_selector("button[data-action$=':pause']")
    page.wait_for_function("() => document.activeElement !== document.body")
    for _ in range(2):  # the live stream brings the same change once more
        refreshed(page)
    assert page.evaluate("() => Boolean(document.activeElement.closest('main'))")


def test_a_filter_keeps_the_keyboard_where_it_was_changed(page: Any, site: Site) -> None:
    page.goto("/runs")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    name = page.evaluate("() => document.querySelector('form[data-filter] select').name")
    with page.expect_navigation():
        page.select_option(f"form[data-filter] [name='{name}']", index=1)
    page.wait_for_selector("[data-live-sign][data-state=live]")
    assert page.evaluate("() => document.activeElement.name") == name


def test_a_filter_that_is_not_set_does_not_stand_in_the_address(page: Any, site: Site) -> None:
    page.goto("/runs")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    for chosen, address in (("running", "/runs?state=running"), ("", "/runs")):
        with page.expect_navigation():
            page.select_option("form[data-filter] [name=state]", chosen)
        page.wait_for_selector("[data-live-sign][data-state=live]")
        assert page.url.removeprefix(site.url).removesuffix("?") == address


def test_a_hidden_tab_holds_no_connection(page: Any, site: Site) -> None:
    streams: list[Any] = []
    ended: list[Any] = []
    page.on("request", lambda request: streams.append(request) if "/v1/stream" in request.url else None)
    page.on("requestfailed", lambda request: ended.append(request) if "/v1/stream" in request.url else None)
    opened(page, f"/runs/{site.control}")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    assert (len(streams), ended) == (1, [])
    with page.expect_event("requestfailed", lambda request: "/v1/stream" in request.url):
        page.evaluate(SEEN, True)
    with site.sessions.begin() as session:  # meanwhile
        session.get_one(Run, site.control).name = "renamed meanwhile"
    with page.expect_request("**/v1/stream*"):
        page.evaluate(SEEN, False)
    page.wait_for_selector("[data-live-sign][data-state=live]")


@pytest.mark.slow
def test_the_number_of_alerts_in_the_bar_follows_the_alerts_of_other_runs(page: Any, site: Site) -> None:
    for path in (f"/runs/{site.arm}", "/settings"):
        page.goto(path)
        page.wait_for_selector("[data-live-sign][data-state=live]")
        before = int(page.inner_text("#nav .count").split()[0])
        with site.sessions.begin() as session:
            control = session.get_one(Run, site.control)
            said = {"kind": f"test{before}", "level": "ALERT", "title": "A title", "text": "A text"}
            open_alert(session, control, now=site.now, evidence={}, **said)
        page.wait_for_function(f"() => document.querySelector('#nav .count').textContent.startsWith('{before + 1}')")


def ended(site: Site, run_id: str) -> None:
    """What the reconciler writes of a run that failed."""
    with site.sessions.begin() as session:
        run = session.get_one(Run, run_id)
        run.status, run.finished_at = "failed", site.now
        record(session, "run.status", actor="reconciler", run_id=run.id, sweep_id=run.sweep_id, to_state="failed")


@pytest.mark.slow
def test_of_a_run_that_ends_while_one_looks_nothing_is_promised_any_more(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        sweep = seeding.add_sweep(session, "none yet", now=site.now)
        run = seeding.add_run(session, now=site.now, sweep=sweep).id
        sweep_id = sweep.id
    overlay = page.context.new_page()
    for tab, path in ((page, f"/runs/{run}"), (overlay, f"/sweeps/{sweep_id}")):
        tab.goto(path)
        tab.wait_for_selector("text=No evaluation yet. The first point appears")
        tab.wait_for_selector("[data-live-sign][data-state=live]")
    page.wait_for_selector("text=No metric yet.")
    ended(site, run)
    page.wait_for_selector("text=The run ended before its first evaluation; its events say why.")
    assert page.inner_text("[data-chart-empty] code") == f"forecurve run events {run}"
    assert page.locator("text=No metric was logged.").is_visible()
    overlay.wait_for_selector("text=None of these runs was evaluated before it ended.")
    overlay.close()


@pytest.mark.slow
def test_the_page_of_a_run_follows_its_forks(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        fork = seeding.add_run(session, now=site.now, name="a fork")
        begin = session.scalars(select(Checkpoint).where(Checkpoint.run_id == site.control)).one()
        fork.parent_run_id, fork.parent_checkpoint_id, fork.parent_step = site.control, begin.id, begin.step
        fork_id = fork.id
    opened(page, f"/runs/{site.control}")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    ended(site, fork_id)
    page.wait_for_selector(f"#{fork_id} .state[data-state=failed]")


@pytest.mark.slow
def test_what_goes_on_with_twice_the_budget_fills_the_form_in(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    with site.sessions.begin() as session:
        control = session.get_one(Run, site.control)
        forecast = seeding.add_forecast(session, control, TRUTH, at=42.0, now=site.now, action="scale")
        seeding.add_recommendation(session, control, forecast)
    page.click("text=Go on with twice the budget")
    assert page.input_value("#new-fork [name=changes]") == "budget.compute = 120"
    page.fill("#new-fork [name=changes]", "budget.compute = 90")
    page.click("text=Go on with twice the budget")
    assert page.input_value("#new-fork [name=changes]") == "budget.compute = 90"


def fork(page: Any, name: str, *, lost: bool = False) -> None:
    """Fill in the form and press its button; `lost`: the server does what is asked, its answer never comes."""
    if lost:
        page.route("**/v1/runs/*/forks", lambda route: (route.fetch(), route.abort()), times=1)
    page.fill("#new-fork [name=name]", name)
    with page.expect_event("requestfailed" if lost else "requestfinished", lambda asked: "/forks" in asked.url):
        page.click("#new-fork button")
    page.wait_for_selector("#notice", state="visible" if lost else "hidden")


def test_what_is_pressed_again_because_no_answer_came_is_done_once(page: Any, site: Site, faults: list[str]) -> None:
    opened(page, f"/runs/{site.control}")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    page.click("text=Fork the run from a checkpoint")
    fork(page, "slower", lost=True)
    assert "does not answer" in page.inner_text("#notice")
    fork(page, "slower")
    fork(page, "slower")  # asked anew, it is another
    with site.sessions() as session:
        assert len(session.scalars(select(Run).where(Run.parent_run_id == site.control)).all()) == 2
    faults.clear()  # the browser's own note of the answer that was lost


def test_a_refusal_that_lists_all_that_is_known_leaves_its_form_in_sight(
    page: Any, site: Site, faults: list[str]
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, f"/runs/{site.control}")
    page.click("text=Fork the run from a checkpoint")
    page.fill("#new-fork textarea", "xyzzy = 1")
    page.click("#new-fork button")
    page.wait_for_selector("#notice:has-text('known here: algorithm.advantage_scale')")
    notice = page.locator("#notice")
    assert notice.bounding_box()["height"] < page.viewport_size["height"] / 3
    notice.evaluate("(notice) => notice.scrollTo(0, notice.scrollHeight)")
    page.get_by_role("button", name="Close this message").click()
    assert notice.is_hidden()
    faults[:] = [fault for fault in faults if "422" not in fault]  # the browser's own note of the refusal


@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_tags_and_a_note_are_written_in_the_dialog_and_taken_away(page: Any, site: Site, kind: str) -> None:
    path = f"/runs/{site.control}" if kind == "run" else f"/sweeps/{site.sweep}"
    opened(page, path)
    page.click("text=Add tags")
    assert page.is_hidden("dialog textarea")
    page.keyboard.type("baseline, for the paper ,, baseline")
    page.keyboard.press("Enter")
    page.wait_for_selector(".labels .tag:has-text('for the paper')")
    assert page.locator(".labels .tag").all_inner_texts() == ["baseline", "for the paper"]
    page.click("text=Add a note")
    assert page.is_hidden("dialog input")
    assert page.evaluate("() => document.activeElement.labels[0].innerText").startswith("What it is for")
    page.keyboard.type("first line")
    page.keyboard.press("Enter")
    page.keyboard.type("see https://example.com/pull/1")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".note a[href='https://example.com/pull/1']")
    assert page.inner_text(".note") == "first line\nsee https://example.com/pull/1"
    page.set_viewport_size({"width": 1600, "height": 900})  # wide enough for both beside one another
    button, note = page.get_by_text("Edit note").bounding_box(), page.locator(".note").bounding_box()
    assert note["y"] >= button["y"] + button["height"]  # below what edits it, and not beside
    page.click("text=Edit note")
    assert page.input_value("dialog textarea") == "first line\nsee https://example.com/pull/1"
    page.fill("dialog textarea", " ")
    page.click("dialog [value=yes]")
    page.wait_for_selector("text=Add a note")
    page.click("text=Edit tags")
    assert page.input_value("dialog input") == "baseline, for the paper"
    page.fill("dialog input", "")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Add tags")
    assert page.locator(".labels .tag, .note").count() == 0


def test_a_tag_that_is_refused_is_said_to_be_so_where_it_was_written(page: Any, site: Site, faults: list[str]) -> None:
    opened(page, f"/runs/{site.control}")
    page.click("text=Add tags")
    page.keyboard.type("x" * 65)
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog [data-error]:not([hidden])")
    assert "64 characters" in page.inner_text("dialog [data-error]")
    page.keyboard.press("Escape")
    page.click("text=Rename")  # nothing of the other question is left in the dialog
    assert page.is_hidden("dialog [data-error]")
    assert page.input_value("dialog input") == "control"
    faults[:] = [fault for fault in faults if "422" not in fault]


def test_a_sweep_is_extended_by_what_its_page_offers(page: Any, site: Site, faults: list[str]) -> None:
    def runs() -> list[tuple[str | None, int | None]]:
        with site.sessions() as session:
            mine = select(Run).where(Run.sweep_id == site.sweep).order_by(Run.id)
            return [(run.arm, run.seed) for run in session.scalars(mine)]

    with site.sessions.begin() as session:
        arm = session.get_one(Run, site.arm).arm
        open_ = {"verdict": "undecided", "direction": None, "seeds_needed": 2, "would_decide": "1 more seed of each"}
        seeding.add_comparison(session, session.get_one(Sweep, site.sweep), str(arm), now=site.now, **open_)
    opened(page, f"/sweeps/{site.sweep}")
    page.click("td.verdict button")
    assert "Queue 2 more runs" in page.inner_text("dialog")
    page.click("dialog [value=yes]")
    page.wait_for_selector("text=its further seeds, which are on their way")
    assert runs()[2:] == [("control", 1), (arm, 1)]
    page.click("text=Add seeds")
    page.keyboard.type("many")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog [data-error]:not([hidden])")
    assert "whole number" in page.inner_text("dialog [data-error]")
    page.fill("dialog input", "1")
    page.keyboard.press("Enter")
    page.wait_for_selector("tbody tr >> nth=5")
    assert runs()[4:] == [("control", 2), (arm, 2)]
    page.click("text=Add an arm to the sweep")
    page.fill("#new-arm textarea", "optimizer.learning_rate = 1e-4")
    page.click("#new-arm button")
    page.wait_for_selector("tbody tr >> nth=8")
    assert runs()[6:] == [("learning_rate=0.0001", seed) for seed in (0, 1, 2)]
    faults[:] = [fault for fault in faults if "422" not in fault]
