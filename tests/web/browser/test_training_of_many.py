"""What the runs of a sweep logged, over one another: the runs that are drawn above, in the colours of their arms."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, insert, update

from server.dependencies import session_cookie
from server.metrics.models import MetricPoint
from tests.web import seeding
from tests.web.browsing import MARKS, TRUTH, Server, Site

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
    told = page.locator("#training [data-told]")
    assert told.text_content() == "no-<b>cispo</b>, 0.4 CPU-seconds, step 1: Entropy 0.501 nats"
    page.keyboard.press("Escape")
    assert said.inner_text() == "over compute, up to 39.6 CPU-seconds"


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


def test_a_run_that_did_not_log_a_metric_is_told_no_value_of_another(page: Any, logged: Site) -> None:
    see(page, f"/sweeps/{logged.sweep}?metric=only")
    entropy, only = page.locator("[data-metric='train/entropy']"), page.locator("[data-metric=only]")
    entropy.focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator("#training-head [data-said]").inner_text().startswith("control, ")
    assert (entropy.locator(".value").inner_text(), only.locator(".value").inner_text()) == ("0.699 nats", "not logged")
    assert only.locator(".rule").get_attribute("visibility") == "hidden"
    page.keyboard.press("ArrowDown")
    assert only.locator(".value").inner_text() == "3.1"


def test_a_run_that_ended_early_is_not_pointed_at_beyond_its_end(page: Any, logged: Site) -> None:
    with logged.sessions.begin() as session:
        early = MetricPoint.run_id == logged.control, MetricPoint.step > 10
        session.execute(delete(MetricPoint).where(*early))
    see(page, f"/sweeps/{logged.sweep}?x=linear")
    chart = page.locator(".small-chart")
    chart.scroll_into_view_if_needed()
    box = chart.locator("svg").bounding_box()
    for height in (0.1, 0.5, 0.9):
        page.mouse.move(box["x"] + box["width"] - 2, box["y"] + height * box["height"])
        assert page.locator("#training-head [data-said]").inner_text().startswith("no-<b>cispo</b>, 39.6")


def test_trainers_that_call_it_otherwise_are_in_one_chart(page: Any, logged: Site) -> None:
    with logged.sessions.begin() as session:
        mine = MetricPoint.run_id == logged.arm, MetricPoint.metric == "train/entropy"
        session.execute(update(MetricPoint).where(*mine).values(metric="actor/entropy"))
    see(page, f"/sweeps/{logged.sweep}")
    assert page.evaluate(LINES) == [["train/entropy", 2]]


def test_what_was_logged_without_compute_stands_over_steps_and_says_so(page: Any, logged: Site) -> None:
    with logged.sessions.begin() as session:
        session.execute(update(MetricPoint).where(MetricPoint.metric == "only").values(compute=None))
    see(page, f"/sweeps/{logged.sweep}?metric=only&metric=only")
    assert page.evaluate(LINES) == [["train/entropy", 2], ["only", 1]]
    assert page.locator("[data-metric=only] p").inner_text() == "over steps"
    assert "over steps" not in page.locator("[data-metric='train/entropy']").inner_text()


def test_what_could_not_be_loaded_is_not_drawn_and_can_be_loaded_again(
    page: Any, logged: Site, faults: list[str]
) -> None:
    see(page, f"/sweeps/{logged.sweep}")
    busy = {"status": 503, "title": "Busy", "detail": "too much", "code": "busy"}
    page.route("**/v1/runs:metrics*", lambda route: route.fulfill(status=503, json=busy))
    drawn_anew(page, lambda: page.locator(f"[data-key='{logged.arm}']").click())
    assert "could not be loaded: too much" in page.locator("[data-training-error]").inner_text()
    assert page.evaluate(LINES) == []
    page.unroute("**/v1/runs:metrics*")
    drawn_anew(page, lambda: page.get_by_role("button", name="Try again").click())
    assert page.evaluate(LINES) == [["train/entropy", 1]]
    assert page.locator("[data-training-error]").is_hidden()
    assert page.get_by_role("button", name="Try again").is_hidden()
    assert faults
    faults.clear()  # the refusals, as the browser notes them


def test_a_tap_tells_what_is_there(chromium: Any, server: Server, logged: Site) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844}, base_url=server.url, has_touch=True)
    context.add_cookies([{"name": session_cookie(server.url), "value": server.cookie, "url": server.url}])
    page = context.new_page()
    see(page, f"/sweeps/{logged.sweep}?metric=only")
    chart = page.locator("[data-metric='train/entropy']")
    chart.scroll_into_view_if_needed()
    box = chart.locator("svg").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] - 3, box["y"] + box["height"] - 3)
    assert chart.locator(".value").inner_text().startswith("0.59")
    assert page.locator("#training-head [data-said]").inner_text().startswith("no-<b>cispo</b>, 3")
    page.locator("[data-metric=only] svg").tap()  # another chart gets the focus then
    assert page.locator("[data-metric=only] .rule").get_attribute("visibility") == "visible"
    context.close()


@pytest.mark.slow
def test_of_more_runs_than_are_asked_for_at_once_it_is_said_that_there_are_others(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        sweep = seeding.add_sweep(session, now=site.now, name="large")
        for k in range(25):
            changes = {"algorithm.clip_low": round(0.1 + 0.001 * k, 4)} if k else None
            run = seeding.add_run(session, now=site.now, sweep=sweep, name=f"arm {k}", changes=changes)
            seeding.add_evaluations(session, run, TRUTH, until=10, now=site.now)
            session.flush()
            session.execute(insert(MetricPoint), _rows(site, run.id, "train/entropy", k / 10))
        sweep_id = sweep.id
    see(page, f"/sweeps/{sweep_id}")
    assert page.evaluate(LINES) == [["train/entropy", 20]]
    assert page.locator("[data-some-drawn]").is_hidden()
    drawn_anew(page, lambda: page.locator("[data-draw=all]").click())
    assert page.evaluate(LINES) == [["train/entropy", 20]]
    assert "the other 5 here" in page.locator("[data-some-drawn]").inner_text()
    drawn_anew(page, lambda: page.locator("[data-draw=none]").click())
    assert page.locator("#training-empty").is_hidden()
    assert page.locator("[data-none-drawn]").is_visible()
