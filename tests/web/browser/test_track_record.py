"""The chart of the track record, by mouse and by keyboard."""

from __future__ import annotations

from typing import Any

import pytest

from server.events.service import record
from server.runs.models import Run
from server.sweeps.models import Sweep
from tests.web import seeding
from tests.web.browsing import MARKS, TRUTH, Server, Site, opened, traces, windowed

pytestmark = MARKS


@pytest.fixture
def scored(site: Site) -> list[str]:
    """Two forecasts of a run of the sweep that is over; the second said too much."""
    with site.sessions.begin() as session:
        sweep = session.get_one(Sweep, site.sweep)
        run = seeding.add_run(session, now=site.now, name="over <i>and</i> out", sweep=sweep, status="succeeded")
        seeding.add_evaluations(session, run, TRUTH, until=60, now=site.now)
        early, late = (seeding.add_forecast(session, run, TRUTH, at=at, now=site.now) for at in (16.0, 40.0))
        ends = late.summary["ends_ahead"].items()
        off = {name: [value + 0.2 * (name != "compute") for value in values] for name, values in ends}
        late.summary = late.summary | {"ends_ahead": off}
        return [early.id, late.id]


def said(page: Any) -> str:
    return str(page.locator("[data-said]").inner_text())


def test_every_forecast_stands_where_it_was_made_with_how_far_it_was_off(
    page: Any, site: Site, scored: list[str]
) -> None:
    drawn = opened(page, f"/track-record?sweep={site.sweep}")
    assert {"held", "missed"} <= set(drawn)
    assert drawn["held"]["x"] == pytest.approx([26.7], abs=0.5)
    assert drawn["missed"]["x"] == pytest.approx([66.7], abs=0.5)
    assert drawn["missed"]["y"] == pytest.approx([0.2], abs=0.02)
    assert page.locator("#plot .annotation", has_text="a quarter: 1 of 1 held").count() == 1


def test_what_held_is_read_beside_the_buttons_that_stay_on_a_phone(
    chromium: Any, server: Server, site: Site, scored: list[str]
) -> None:
    page = windowed(chromium, server, viewport={"width": 375, "height": 800}, has_touch=True, is_mobile=True)
    opened(page, f"/track-record?sweep={site.sweep}")
    buttons = page.locator("#plot .modebar").bounding_box()
    words = [one.bounding_box() for one in page.locator("#plot .annotation").all()]
    assert words
    assert min(box["y"] for box in words) >= buttons["y"] + buttons["height"]
    page.context.close()


@pytest.mark.slow
def test_a_chart_of_the_newest_says_so(page: Any, site: Site, scored: list[str]) -> None:
    path = f"/track-record?sweep={site.sweep}"
    opened(page, path)
    assert page.locator("[data-cut]").is_hidden()
    page.route("**/v1/track-record*", lambda route: route.fulfill(json=route.fetch().json() | {"scored": 1234}))
    opened(page, path)
    assert page.inner_text("[data-cut]") == "the newest 2 of 1,234 drawn"


@pytest.mark.slow
def test_ticks_that_are_close_are_told_apart(page: Any, site: Site, scored: list[str]) -> None:
    opened(page, f"/track-record?sweep={site.sweep}")
    page.evaluate("() => Plotly.relayout(document.querySelector('#plot'), {'yaxis.range': [-0.004, 0.004]})")
    page.wait_for_function("() => document.querySelector('#plot .ytick text').textContent.length > 5")
    labels = page.locator("#plot .ytick text").all_text_contents()
    assert len(labels) == len(set(labels)) > 2
    assert "+0.002" in labels


def test_the_arrow_keys_read_the_forecasts_out_and_enter_opens_one(page: Any, site: Site, scored: list[str]) -> None:
    opened(page, f"/track-record?sweep={site.sweep}")
    page.focus("#plot")
    page.keyboard.press("ArrowRight")
    assert said(page).startswith("over <i>and</i> out, made at 27 %: forecast 0.7")
    assert said(page).endswith(", in the interval.")
    assert page.locator("#plot .hoverlayer text").count() > 0
    page.keyboard.press("End")
    assert said(page).endswith(", outside of the interval.")
    page.keyboard.press("Escape")
    assert said(page) == ""
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/*?at={scored[1]}")
    page.wait_for_selector("[data-chart][data-drawn]")
    assert page.locator("[data-replay] output").inner_text().startswith("as it was at 40 CPU-seconds")


def test_a_press_on_a_forecast_opens_its_run_with_it_as_it_was(page: Any, site: Site, scored: list[str]) -> None:
    opened(page, f"/track-record?sweep={site.sweep}")
    place = page.evaluate("""() => {
        const plot = document.querySelector('#plot'), {xaxis, yaxis} = plot._fullLayout;
        const box = plot.getBoundingClientRect();
        const one = plot.data.find(({name}) => name === 'held');
        return [box.left + xaxis._offset + xaxis.l2p(one.x[0]), box.top + yaxis._offset + yaxis.l2p(one.y[0])];
    }""")
    page.mouse.move(*place)
    page.wait_for_selector("#plot .hoverlayer text")
    page.mouse.click(*place)
    page.wait_for_url(f"**/runs/*?at={scored[0]}")


def test_a_zoom_stays_over_a_reload_and_back(page: Any, site: Site, scored: list[str]) -> None:
    opened(page, f"/track-record?sweep={site.sweep}&zoom=20..30")
    assert page.evaluate("() => document.querySelector('#plot').layout.xaxis.range") == [20, 30]
    assert "zoom=20..30" in page.url


def test_a_run_that_ends_brings_the_first_chart_to_an_open_page(page: Any, site: Site) -> None:
    page.goto(f"/track-record?sweep={site.sweep}")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    assert page.locator("[data-chart]").count() == 0
    with site.sessions.begin() as session:
        run = session.get_one(Run, site.control)
        run.status = "stopped"
        record(session, "run.status", actor="trainer", run_id=run.id, from_state="running", to_state="stopped")
    page.wait_for_selector("[data-chart][data-drawn]")
    assert {"held"} <= set(traces(page))
