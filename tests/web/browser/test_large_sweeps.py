"""The chart of a sweep of more than a hundred runs, in a real browser: a few curves and a field for the others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.sweeps.large import Large, large_sweep
from tests.web.browsing import MARKS, Site, opened, traces, widths

pytestmark = MARKS
RUNS = "() => document.querySelector('#plot').data.filter(t => t.meta).length"


@pytest.fixture
def large(site: Site) -> Large:
    with site.sessions.begin() as session:
        return large_sweep(session)


def test_the_others_are_a_field_beneath_the_curves_along_compute(page: Any, large: Large) -> None:
    drawn = opened(page, f"/sweeps/{large.id}")
    assert page.evaluate(RUNS) == 12
    said = page.locator(".keys-head").inner_text()
    assert said.startswith("12 of 120 drawn: the control, the 9 arms forecast highest")
    assert list(drawn)[:3] == ["others lower90", "others lower50", "others median"]
    low, high = page.evaluate("() => document.querySelector('#plot').layout.yaxis.range")
    assert low <= min(drawn["others lower90"]["y"])
    assert max(drawn["others lower90"]["y"]) <= high
    assert page.get_by_text("the other 108").is_visible()
    page.click("label[for=x-steps]")
    page.wait_for_function("() => !document.querySelector('#plot').data.some(t => t.name === 'others median')")
    assert page.get_by_text("the other 108").is_hidden()  # along steps nothing was counted


def test_the_field_stays_when_no_run_is_drawn(page: Any, large: Large) -> None:
    opened(page, f"/sweeps/{large.id}")
    page.click("[data-draw=none]")
    page.wait_for_function("() => document.querySelector('[data-drawn-count]').textContent.startsWith('0 of 120')")
    assert list(traces(page)) == ["others lower90", "others lower50", "others median"]
    page.click("[data-draw=all]")
    page.wait_for_function(f"({RUNS})() === 12")


def test_a_run_in_the_table_is_drawn_beside_those_that_were_left(page: Any, large: Large) -> None:
    opened(page, f"/sweeps/{large.id}?text=arm+7")
    page.click("label[for=x-linear]")
    hidden = page.locator("[data-key]").nth(3)
    name = hidden.inner_text()
    hidden.click()
    page.wait_for_function(f"({RUNS})() === 11")
    page.click(f"tr[id={large.arms['arm 7'][3]}] a.draw")
    page.wait_for_url("**#chart")
    page.wait_for_selector("[data-chart][data-drawn]")
    drawn = traces(page)
    assert "arm 7 s3" in drawn
    assert name not in drawn
    assert page.is_checked("#x-linear")
    assert page.locator("[data-drawn-count]").inner_text() == "12 of 120 drawn"


@pytest.mark.parametrize("width", widths(360, 768, 1280))
def test_a_large_sweep_fits_its_window(width: int, page: Any, large: Large) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    opened(page, f"/sweeps/{large.id}")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    for control in page.locator(".keys-head > *, .paging a").all():
        box = control.bounding_box()
        assert box["x"] + box["width"] <= width
    page.get_by_label("Name or arm").fill("arm 7")
    page.keyboard.press("Enter")
    page.wait_for_url("**text=arm+7**")
    assert page.locator("[data-arm]").count() == 4
