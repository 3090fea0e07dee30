"""What the runs of a sweep logged, over one another: the runs that are drawn above, in the colours of their arms."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import insert

from server.metrics.models import MetricPoint
from tests.web.browsing import MARKS, Site

pytestmark = MARKS
LOGGED = {"train/entropy": 0.5, "eval/<b>other</b>": 0.2}
LINES = """() => [...document.querySelectorAll('.small-chart')]
    .map(figure => [figure.dataset.metric, figure.querySelectorAll('.run').length])"""
CLASSES = """() => [...document.querySelectorAll('.small-chart .run')]
    .map(line => [line.dataset.run, line.className.baseVal])"""


@pytest.fixture
def logged(site: Site) -> Site:
    """Both arms have logged LOGGED, the control higher; the arm alone has logged "only"."""
    with site.sessions.begin() as session:
        for run, above in ((site.control, 0.1), (site.arm, 0.0)):
            for name, value in LOGGED.items():
                session.execute(insert(MetricPoint), _rows(site, run, name, value + above))
        session.execute(insert(MetricPoint), _rows(site, site.arm, "only", 3.0))
    return site


def _rows(site: Site, run: str, name: str, value: float) -> list[dict[str, Any]]:
    row = {"run_id": run, "metric": name, "attempt": 1, "time": site.now}
    return [row | {"step": k, "compute": 0.4 * k, "value": value + 1e-3 * k} for k in range(100)]


def see(page: Any, path: str) -> None:
    page.goto(path)
    page.wait_for_selector("#plot[data-drawn]")
    page.locator("#training").scroll_into_view_if_needed()
    page.wait_for_selector("#training[data-drawn]")


def drawn_anew(page: Any, act: Any) -> None:
    before = page.locator("#training").get_attribute("data-drawn")
    act()
    page.wait_for_function(f"() => document.querySelector('#training').dataset.drawn !== '{before}'")


def test_the_overview_has_a_line_for_each_run_in_the_colour_of_its_arm(page: Any, logged: Site) -> None:
    see(page, f"/sweeps/{logged.sweep}")
    assert page.evaluate(LINES) == [["train/entropy", 2]]
    assert page.evaluate(CLASSES) == [[logged.control, "run neutral"], [logged.arm, "run series-0"]]
    label = page.locator(".small-chart").get_attribute("aria-label")
    assert (
        label == "Entropy, of the policy at the tokens trained on, now: control 0.699 nats, no-<b>cispo</b> 0.599 nats"
    )


def test_another_metric_is_chosen_stays_in_the_url_and_goes_along_with_the_order(page: Any, logged: Site) -> None:
    see(page, f"/sweeps/{logged.sweep}?metric=eval/<b>other</b>")
    assert page.evaluate(LINES) == [["train/entropy", 2], ["eval/<b>other</b>", 2]]
    drawn_anew(page, lambda: page.get_by_label("Also show").select_option("only"))
    assert page.evaluate(LINES)[2] == ["only", 1]
    page.locator(".sortable th a").first.click()
    page.wait_for_url("**sort=*")
    assert page.url.count("metric=") == 2
    page.locator("#training").scroll_into_view_if_needed()
    page.wait_for_selector("#training[data-drawn]")
    drawn_anew(page, lambda: page.get_by_role("button", name="Remove only").click())
    assert [name for name, _ in page.evaluate(LINES)] == ["train/entropy", "eval/<b>other</b>"]


def test_a_run_whose_key_is_released_is_not_drawn_here_either(page: Any, logged: Site) -> None:
    see(page, f"/sweeps/{logged.sweep}")
    drawn_anew(page, lambda: page.locator(f"[data-key='{logged.arm}']").click())
    assert page.evaluate(LINES) == [["train/entropy", 1]]
    drawn_anew(page, lambda: page.locator(f"[data-key='{logged.control}']").click())
    assert page.evaluate(LINES) == []
    assert page.locator("[data-none-drawn]").is_visible()
    drawn_anew(page, lambda: page.locator(f"[data-key='{logged.control}']").click())
    assert page.evaluate(LINES) == [["train/entropy", 1]]
    assert page.locator("[data-none-drawn]").is_hidden()


def test_the_line_that_is_pointed_at_comes_forward_and_is_told(page: Any, logged: Site) -> None:
    see(page, f"/sweeps/{logged.sweep}")
    chart = page.locator(".small-chart")
    chart.scroll_into_view_if_needed()
    box = chart.locator("svg").bounding_box()
    near = "() => [...document.querySelectorAll('.small-chart .run.near')].map(g => g.dataset.run)"
    for height, run, name in ((0.0, logged.control, "control"), (1.0, logged.arm, "no-<b>cispo</b>")):
        page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 2 + height * (box["height"] - 4))
        assert page.evaluate(near) == [run]
        assert page.locator("#training-head [data-said]").inner_text() == f"{name}, 39.6 CPU-seconds, step 99"
    assert chart.locator(".value").inner_text() == "0.599 nats"
    page.mouse.move(0, 0)
    assert page.evaluate(near) == []
    assert chart.locator(".value").inner_text() == "2 runs"
    page.locator(f"[data-key='{logged.arm}']").hover()
    assert page.evaluate(near) == [logged.arm]


def test_under_the_keyboard_places_go_along_a_run_and_up_and_down_to_others(page: Any, logged: Site) -> None:
    see(page, f"/sweeps/{logged.sweep}")
    said = page.locator("#training-head [data-said]")
    page.locator(".small-chart").focus()
    page.keyboard.press("ArrowLeft")
    assert said.inner_text() == "control, 39.6 CPU-seconds, step 99"
    page.keyboard.press("ArrowDown")
    assert said.inner_text() == "no-<b>cispo</b>, 39.6 CPU-seconds, step 99"
    page.keyboard.press("ArrowDown")  # none is lower
    page.keyboard.press("Home")
    assert said.inner_text().startswith("no-<b>cispo</b>, 0.4 CPU-seconds, step 1")
    page.keyboard.press("Escape")
    assert said.inner_text() == ""


def test_a_comparison_shows_them_too_and_where_nothing_was_logged_it_is_said(
    page: Any, site: Site, logged: Site
) -> None:
    see(page, f"/compare?run={logged.control}&run={logged.arm}")
    assert page.evaluate(LINES) == [["train/entropy", 2]]
    with site.sessions.begin() as session:
        session.query(MetricPoint).delete()
    see(page, f"/compare?run={logged.control}&run={logged.arm}")
    assert page.locator("#training-empty").is_visible()
    assert page.evaluate(LINES) == []
