"""The chart of a metric's forecast in a real browser, and the way to it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import insert

from server.metrics.models import MetricPoint
from tests.web.browsing import MARKS, Site, opened
from tests.web.seeding import Truth

pytestmark = MARKS
TRUTH = Truth(A=0.5, R0=0.1)


@pytest.fixture
def logged(site: Site) -> Site:
    """A control that has logged another benchmark, as a share and in percent."""
    with site.sessions.begin() as session:
        for name, scale in (("eval/<b>aime</b>", 1.0), ("eval/percent", 100.0)):
            row = {"run_id": site.control, "metric": name, "attempt": 1, "time": site.now}
            rows = [row | {"step": k, "compute": 2.0 * k, "value": scale * TRUTH(2.0 * k)} for k in range(22)]
            session.execute(insert(MetricPoint), rows)
    return site


def test_a_small_chart_leads_to_the_forecast_of_its_metric(page: Any, logged: Site) -> None:
    page.goto(f"/runs/{logged.control}?metric=eval/<b>aime</b>&metric=eval/percent")
    page.locator("#training").scroll_into_view_if_needed()
    page.wait_for_selector("#training[data-drawn]")
    assert page.locator("[data-metric='eval/percent'] .forecast").count() == 0  # it asks for its range first
    page.locator("[data-metric='eval/<b>aime</b>'] .forecast").click()
    page.wait_for_selector("#plot[data-drawn]")
    assert page.url.endswith(f"/runs/{logged.control}/forecast?metric=eval%2F%3Cb%3Eaime%3C%2Fb%3E")
    assert page.locator("h1").inner_text() == "eval/<b>aime</b>"
    assert page.locator("#plot .ytitle").text_content() == "eval/<b>aime</b>"


def test_values_in_percent_stand_on_an_axis_of_their_own(page: Any, logged: Site) -> None:
    drawn = opened(page, f"/runs/{logged.control}/forecast?metric=eval/percent&high=100&budget=90")
    assert drawn["evaluations"]["y"] == pytest.approx([100 * TRUTH(2.0 * k) for k in range(22)])
    for compute, value in zip(drawn["forecast"]["x"], drawn["forecast"]["y"], strict=True):
        assert value == pytest.approx(100 * TRUTH(compute), abs=1.0)
    assert drawn["at budget"]["x"] == [90.0]
    low, high = page.evaluate("() => document.querySelector('#plot').layout.yaxis.range")
    assert low < 10
    assert 45 < high < 100
    ticks = page.locator("#plot .ytick").all_text_contents()
    assert ticks
    assert all(tick.isdecimal() for tick in ticks)
    page.locator("#plot").focus()
    page.keyboard.press("ArrowLeft")
    assert "step 21: eval/percent 4" in page.locator("[data-said]").first.text_content()


def test_of_a_metric_that_falls_it_is_not_said_that_it_rose(page: Any, logged: Site) -> None:
    with logged.sessions.begin() as session:
        row = {"run_id": logged.control, "metric": "train/loss", "attempt": 1, "time": logged.now}
        rows = [row | {"step": k, "compute": 2.0 * k, "value": 2.0 - 1.5 * k / 21} for k in range(22)]
        session.execute(insert(MetricPoint), rows)
    opened(page, f"/runs/{logged.control}/forecast?metric=train/loss&high=10")
    assert "it falls, where a sigmoid only rises" in page.inner_text(".panel")
    left = page.locator("h1").bounding_box()["x"]  # there is no advice that would stand before it
    assert page.locator("h2", has_text="Runs it learns from").bounding_box()["x"] == left


def test_another_metric_is_chosen_by_the_form(page: Any, logged: Site, faults: list[str]) -> None:
    page.goto(f"/runs/{logged.control}/forecast")
    page.get_by_label("Metric").select_option("eval/percent")
    page.get_by_role("button", name="Forecast").click()
    assert "Highest it can be: values from" in page.locator(".panel").inner_text()
    (refused,) = faults
    assert "422" in refused
    faults.clear()
    page.get_by_label("Highest it can be").fill("100")
    page.keyboard.press("Enter")
    page.wait_for_selector("#plot[data-drawn]")
    assert page.get_by_label("Highest it can be").input_value() == "100"
    assert page.locator("#plot .ytitle").text_content() == "eval/percent"
