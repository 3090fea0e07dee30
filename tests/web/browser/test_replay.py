"""The slider of past forecasts where answers are late, or do not come."""

from __future__ import annotations

import re
from typing import Any

from tests.web.browsing import MARKS, Site, opened

pytestmark = MARKS
FORECAST = re.compile(r"/v1/forecasts/")
SAID = "[data-replay] output"
FIT = "at => document.querySelector('#plot').data.find(t => t.name === 'fit').x.at(-1) === at"


def test_an_answer_that_comes_late_does_not_take_the_slider_back(page: Any, site: Site) -> None:
    held: list[Any] = []
    opened(page, f"/runs/{site.control}")
    page.route(FORECAST, lambda route: held.append(route))
    page.focus("#replay")
    with page.expect_request(FORECAST):
        page.keyboard.press("Home")
    page.keyboard.press("End")  # back to the newest, before that answer
    with page.expect_response(FORECAST):
        held[0].continue_()
    page.unroute(FORECAST)
    page.evaluate("() => new Promise(done => setTimeout(() => requestAnimationFrame(done)))")
    assert page.inner_text(SAID).startswith("newest forecast")
    assert page.input_value("#replay") == page.get_attribute("#replay", "max")
    assert page.evaluate(FIT, 42)
    assert "at=" not in page.url


def test_a_forecast_that_cannot_be_had_is_said_beside_the_slider(page: Any, site: Site, faults: list[str]) -> None:
    opened(page, f"/runs/{site.control}")
    page.route(FORECAST, lambda route: route.abort())
    page.focus("#replay")
    page.keyboard.press("Home")
    page.wait_for_function(f"() => document.querySelector('{SAID}').textContent.includes('does not answer')")
    page.unroute(FORECAST)
    page.keyboard.press("End")
    page.keyboard.press("Home")  # once more
    page.wait_for_function(FIT, arg=12)
    assert page.inner_text(SAID).startswith("as it was at 12 CPU-seconds")
    assert [fault for fault in faults if "ERR_FAILED" in fault] == faults  # the browser's own note of what failed
    faults.clear()
