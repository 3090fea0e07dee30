"""The small charts of what a run logged: an overview for every trainer, the rest by choice, loaded when seen."""

from __future__ import annotations

import math
from typing import Any

import pytest

from server.metrics.models import MetricPoint
from server.runs.models import Run
from tests.web.browsing import MARKS, Site, refreshed_twice, report

pytestmark = MARKS
STEPS = 500
REFRESHED = """() => new Promise((done) => {
    const section = document.querySelector("#training");
    new MutationObserver(done).observe(section, { attributeFilter: ["data-drawn"] });
    document.body.dispatchEvent(new CustomEvent("forecurve:refresh"));
})"""
LOGGED = {"train/reward": 0.5, "loss": -0.01, "policy/mismatch_kl": 0.001, "generation/truncated_share": 0.031}


@pytest.fixture
def logged(site: Site) -> Site:
    """A control that has logged STEPS steps of LOGGED and of two metrics that the overview does not know."""
    with site.sessions.begin() as session:
        for name, value in (LOGGED | {"my/own, metric": 1.0, "my/other": 2.0}).items():
            for step in range(STEPS):
                shown = math.nan if (name, step) == ("loss", 250) else value + 1e-4 * step
                session.add(
                    MetricPoint(
                        run_id=site.control,
                        metric=name,
                        attempt=1,
                        step=step,
                        compute=0.08 * (step + 1),
                        value=shown,
                        time=site.now,
                    )
                )
    return site


def shown(page: Any) -> list[str]:
    return page.evaluate("() => [...document.querySelectorAll('.small-chart')].map(f => f.dataset.metric)")


def see(page: Any, path: str) -> None:
    page.goto(path)
    page.locator("#training").scroll_into_view_if_needed()
    page.wait_for_selector("#training[data-drawn]")


def test_the_overview_shows_what_matters_with_units_and_what_it_is(page: Any, logged: Site) -> None:
    see(page, f"/runs/{logged.control}")
    assert shown(page) == ["train/reward", "loss", "policy/mismatch_kl", "generation/truncated_share"]
    chart = page.locator("[data-metric='generation/truncated_share']")
    label = chart.get_attribute("aria-label")
    assert label.startswith("Truncated, responses cut at the length limit: 8.08 % now, between")
    assert "8.08 %" in chart.inner_text()
    assert page.locator("figure:has(figcaption)[role]").count() == 0  # HTML allows it none, and an image has no button
    assert "1 not finite" in page.locator("[data-metric=loss]").inner_text()
    assert page.locator("[data-metric=loss] polyline").count() == 1  # a mean of its neighbours, no gap
    assert "up to 40 CPU-seconds" in page.inner_text("#training-head")


def test_a_phone_has_the_names_of_metrics_whole(page: Any, logged: Site) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    see(page, f"/runs/{logged.control}")
    assert page.locator("[data-metric='policy/mismatch_kl'] .forecast").is_visible()
    names = page.locator(".small-chart .what").evaluate_all("all => all.map(one => one.scrollWidth - one.clientWidth)")
    assert names == [0] * len(LOGGED)


@pytest.mark.slow
def test_nothing_is_asked_for_before_the_section_is_seen(page: Any, logged: Site) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": 1280, "height": 300})
    page.goto(f"/runs/{logged.control}")
    page.wait_for_selector("[data-chart][data-drawn]")
    assert [url for url in asked if "/metrics" in url] == []
    page.locator("#training").scroll_into_view_if_needed()
    page.wait_for_selector("#training[data-drawn]")
    (series,) = [url for url in asked if "/metrics:thinned" in url]
    assert "buckets=120" in series


@pytest.mark.slow
def test_of_two_answers_the_one_that_was_asked_for_later_is_shown(page: Any, logged: Site) -> None:
    see(page, f"/runs/{logged.control}")
    before = shown(page)
    earlier, later = refreshed_twice(page, "**/metrics:thinned*")
    answer = later.fetch().json()
    for route, items in ((later, answer["items"]), (earlier, answer["items"][:1])):
        with page.expect_response("**/metrics:thinned*"):
            route.fulfill(json=answer | {"items": items})
        page.evaluate("() => new Promise(done => setTimeout(() => requestAnimationFrame(done)))")
        assert shown(page) == before


def test_any_other_metric_is_added_by_choice_and_stands_in_the_url(page: Any, logged: Site) -> None:
    see(page, f"/runs/{logged.control}")
    page.select_option("#training select", "my/own, metric")
    page.wait_for_selector("[data-metric='my/own, metric']")
    assert "metric=my%2Fown%2C+metric" in page.url
    see(page, page.url)
    assert shown(page)[-1] == "my/own, metric"
    options = page.evaluate("() => [...document.querySelectorAll('#training option')].map(o => o.value)")
    assert options == ["", "my/other"]
    page.click("[data-metric='my/own, metric'] [data-remove]")
    page.wait_for_function("() => !document.querySelector('[data-remove]')")
    assert "metric=" not in page.url


def test_the_keyboard_goes_through_the_metrics_and_adds_the_one_that_is_chosen(page: Any, logged: Site) -> None:
    see(page, f"/runs/{logged.control}")
    before = shown(page)
    select = page.locator("#training select")
    select.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.evaluate(REFRESHED)  # what comes in meanwhile takes nothing from the hand
    assert (select.input_value(), shown(page), "metric=" in page.url) == ("my/own, metric", before, False)
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-metric='my/own, metric']")
    assert shown(page) == [*before, "my/own, metric"]
    page.wait_for_function("() => document.querySelector('#training select').value === ''")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    assert select.input_value() == ""
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.wait_for_selector("[data-metric='my/other']")
    page.focus("[data-metric='my/other'] [data-remove]")
    page.keyboard.press("Enter")
    page.wait_for_function("() => !document.querySelector(\"[data-metric='my/other']\")")
    assert page.evaluate("() => document.activeElement.matches('#training select')")


@pytest.mark.slow
def test_no_more_metrics_are_offered_than_are_shown(page: Any, logged: Site) -> None:
    with logged.sessions.begin() as session:
        for number in range(31):
            values = {"attempt": 1, "step": 1, "compute": 1.0, "value": 1.0, "time": logged.now}
            session.add(MetricPoint(run_id=logged.control, metric=f"extra/{number:02}", **values))
    see(page, f"/runs/{logged.control}?" + "&".join(f"metric=extra/{number:02}" for number in range(29)))
    page.select_option("#training select", "extra/29")
    page.wait_for_selector("[data-metric='extra/29']")
    assert page.locator("#training option").all_inner_texts() == ["30 are shown: remove one first"]
    page.click("[data-metric='extra/00'] [data-remove]")
    page.wait_for_selector("#training option[value='extra/00']", state="attached")


@pytest.mark.slow
def test_the_keyboard_reads_all_charts_at_one_place(page: Any, logged: Site) -> None:
    see(page, f"/runs/{logged.control}")
    page.focus("[data-metric='train/reward']")
    page.keyboard.press("Home")
    assert "step 4" in page.inner_text("#training-head")  # the first bucket has steps 0 to 4
    assert "0.5" in page.inner_text("[data-metric='train/reward'] .value")
    assert page.locator("#training .rule[visibility=visible]").count() == 4
    page.keyboard.press("ArrowRight")
    assert "step 9" in page.inner_text("#training-head")
    page.keyboard.press("Escape")
    assert page.locator("#training .rule[visibility=visible]").count() == 0


def test_the_axis_follows_the_switch_of_the_chart_above_and_news_arrive(page: Any, logged: Site) -> None:
    see(page, f"/runs/{logged.control}")
    line = "() => document.querySelector(\"[data-metric='train/reward'] polyline\").getAttribute('points')"
    before = page.evaluate(line)
    page.click("label[for=x-linear]")
    page.wait_for_function(f"() => ({line})() !== {before!r}")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    with logged.sessions.begin() as session:
        values = {"attempt": 1, "step": STEPS, "compute": 44.0, "value": 9.0, "time": logged.now}
        session.add(MetricPoint(run_id=logged.control, metric="train/reward", **values))
    report(logged, 44.0, 0.7)  # an evaluation tells open pages that there is more
    page.wait_for_function("() => document.querySelector('#training-head').innerText.includes('up to 44')")


def test_while_a_run_goes_on_its_steps_appear_without_an_evaluation(page: Any, logged: Site) -> None:
    page.clock.install()
    see(page, f"/runs/{logged.control}")
    page.mouse.move(0, 0)

    def log(step: int, compute: float) -> None:
        with logged.sessions.begin() as session:
            values = {"attempt": 1, "step": step, "compute": compute, "value": 0.6, "time": logged.now}
            session.add(MetricPoint(run_id=logged.control, metric="train/reward", **values))

    log(STEPS, 43.0)
    page.clock.fast_forward(11_000)
    page.wait_for_function("() => document.querySelector('#training-head').innerText.includes('up to 43')")
    log(STEPS + 1, 45.0)
    page.hover("[data-metric='train/reward']")  # somebody reads: nothing moves under the pointer
    page.clock.fast_forward(11_000)
    page.mouse.move(0, 0)
    assert "up to 43" in page.inner_text("#training-head")
    page.clock.fast_forward(11_000)
    page.wait_for_function("() => document.querySelector('#training-head').innerText.includes('up to 45')")

    with logged.sessions.begin() as session:
        session.get_one(Run, logged.control).status = "succeeded"
    page.reload()
    page.wait_for_selector("#training[data-drawn]")
    log(STEPS + 2, 47.0)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.fast_forward(31_000)
    assert [url for url in asked if "/metrics" in url] == []


def test_a_run_without_metrics_says_how_to_log_them(page: Any, site: Site) -> None:
    see(page, f"/runs/{site.control}")
    assert shown(page) == []
    assert "run.log(" in page.inner_text("[data-training-empty]")
    assert page.locator("#training label").is_hidden()
