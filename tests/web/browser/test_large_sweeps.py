"""The chart of a sweep of more than a hundred runs, in a real browser: a few curves and a field for the others."""

from __future__ import annotations

from typing import Any

import pytest

from server.events.service import record
from server.runs.models import Run
from tests.server.forecasts.seeds import make_forecast
from tests.server.sweeps.large import Large, large_sweep
from tests.web.browsing import MARKS, Site, opened, traces, widths

pytestmark = MARKS
LOOKS = """([each, name]) =>
    [...document.querySelectorAll(each)].map(e => [e.dataset[name], e.querySelector('.swatch').className])"""
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


@pytest.mark.slow
def test_the_field_stays_when_no_run_is_drawn(page: Any, large: Large) -> None:
    opened(page, f"/sweeps/{large.id}")
    page.click("[data-draw=none]")
    page.wait_for_function("() => document.querySelector('[data-drawn-count]').textContent.startsWith('0 of 120')")
    assert list(traces(page)) == ["others lower90", "others lower50", "others median"]
    page.click("[data-draw=all]")
    page.wait_for_function(f"({RUNS})() === 12")


@pytest.mark.slow
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
    assert page.get_by_label("Name or arm").input_value() == "arm 7"  # the next one is at hand


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
    page.get_by_label("Name or arm").fill("arm 8")
    page.keyboard.press("Enter")
    page.wait_for_url("**?text=arm+8#arms")


def looks(page: Any, each: str, name: str) -> dict[str, str]:
    """Of each run's key or row, how its swatch looks."""
    return dict(page.evaluate(LOOKS, [each, name]))


@pytest.mark.slow
def test_the_table_keeps_the_colours_of_the_chart_when_another_arm_becomes_the_best(
    page: Any, large: Large, site: Site
) -> None:
    opened(page, f"/sweeps/{large.id}")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    with site.sessions.begin() as session:
        for run_id in large.arms["arm 1"]:
            run = session.get_one(Run, run_id)
            forecast = make_forecast(session, run)
            end = {"median": 0.95, "lower": 0.9, "upper": 0.99}
            forecast.summary = forecast.summary | {"at_budget": {"compute": 100.0, "curve": end, "evaluation": end}}
            run.forecast_id = forecast.id
            record(session, "forecast", actor="refit", run_id=run.id, sweep_id=large.id)
    page.wait_for_function("id => document.getElementById(id)?.innerText.includes('0.95')", arg=large.arms["arm 1"][0])
    keys = looks(page, "[data-key]", "key")
    rows = looks(page, "tr[data-arm]:has(.swatch)", "arm")
    assert rows == {id_: look for id_, look in keys.items() if id_ in rows}
    assert page.locator(f"#{large.arms['arm 1'][0]} a.draw").is_visible()
