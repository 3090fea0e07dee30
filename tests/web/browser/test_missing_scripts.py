"""On a network that loses something on the way, the page says what is missing, and comes round where it can."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.browsing import MARKS, Site

pytestmark = MARKS


@pytest.mark.parametrize(
    ("script", "place"),
    [("js/chart/curve.js", "[data-chart-error]"), ("js/training/section.js", "[data-training-error]")],
)
def test_a_part_whose_script_did_not_load_says_so(
    page: Any, site: Site, faults: list[str], script: str, place: str
) -> None:
    page.route(f"**/{script}", lambda route: route.abort())
    page.goto(f"/runs/{site.control}")
    page.locator("#training").scroll_into_view_if_needed()
    page.wait_for_selector(f"{place}:has-text('did not load; reload the page')")
    page.wait_for_selector("#training:not([data-loading])")  # no room is kept for what does not come
    assert {fault.partition(":")[0] for fault in faults} == {"Failed to load resource"}  # the browser's own note
    faults.clear()


def test_the_chart_library_is_fetched_again_where_it_was_lost(page: Any, site: Site, faults: list[str]) -> None:
    page.clock.install()
    page.route("**/plotly-basic.min.js", lambda route: route.abort())
    page.goto(f"/runs/{site.control}")
    page.wait_for_selector("[data-chart-error]:has-text('the chart library did not load')")
    page.unroute("**/plotly-basic.min.js")
    page.clock.fast_forward(4_000)
    page.wait_for_selector("[data-chart][data-drawn]")
    page.wait_for_selector("[data-chart-error]", state="hidden")
    assert {fault.partition(":")[0] for fault in faults} == {"Failed to load resource"}
    faults.clear()


def test_a_page_that_cannot_be_refreshed_is_not_called_live(page: Any, site: Site, faults: list[str]) -> None:
    page.route("**/htmx.min.js", lambda route: route.abort())
    page.goto("/runs")
    page.wait_for_selector("[data-live-sign][data-state='not refreshed']")
    faults.clear()
