"""Pages where less shows: a phone's chart, a tablet's cards, the colours of a person's own system, no scripts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web import seeding
from tests.web.browser.test_layout import overlap
from tests.web.browsing import MARKS, TRUTH, Server, Site, opened, widths, windowed

pytestmark = MARKS

POINTS = """() => [...document.querySelectorAll('#plot .scatterlayer .points path')].map(path => {
    const {x, y, width, height} = path.getBoundingClientRect();
    return {x, y, width, height};
})"""
PAINTED = "label => { const s = getComputedStyle(label); return [s.backgroundColor, s.color]; }"


@pytest.mark.parametrize("width", widths(390, 768, 1280))
def test_the_words_of_an_alert_hide_no_evaluation_where_there_is_room(page: Any, site: Site, width: int) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="fell late")
        seeding.add_evaluations(session, run, TRUTH, until=44, now=site.now, fall_at=30)
        seeding.add_alert(session, run, since=34, at=36, now=site.now, delivered=False)
        path = f"/runs/{run.id}"
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, path)
    words = page.locator("#plot .annotation-text-g", has_text="below forecast").bounding_box()
    points = page.evaluate(POINTS)
    assert len(points) > 10
    assert [point for point in points if overlap(point, words)] == []


@pytest.mark.parametrize("width", widths(390, 360, 1280))
@pytest.mark.parametrize(("until", "fall_at"), [(42, 24), (44, 30), (58, 30)])
def test_what_is_said_of_a_withheld_forecast_hides_no_evaluation(
    page: Any, site: Site, until: float, fall_at: float, width: int
) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="fell")
        seeding.add_evaluations(session, run, TRUTH, until=until, now=site.now, fall_at=fall_at)
        seeding.add_forecast(session, run, TRUTH, at=until, now=site.now, misfit="decline")
        path = f"/runs/{run.id}"
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, path)
    words = page.locator("#plot .annotation-text-g", has_text="withheld").bounding_box()
    points = page.evaluate(POINTS)
    assert len(points) > 10
    assert [point for point in points if overlap(point, words)] == []
    plot = page.locator("#plot").bounding_box()
    assert words["x"] + words["width"] <= plot["x"] + plot["width"]


@pytest.mark.parametrize("width", widths(390, 1280))
def test_the_labels_of_the_start_and_of_the_first_tick_are_told_apart(page: Any, site: Site, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, f"/runs/{site.control}")
    labels = page.locator("#plot .xtick text").all()
    assert labels[0].text_content() == "0"
    start, first = (label.bounding_box() for label in labels[:2])
    assert first["x"] - start["x"] - start["width"] >= 6


@pytest.mark.parametrize("path", ["/runs/{control}?x=time", "/sweeps/{sweep}?x=steps"])
def test_the_title_of_the_axis_is_read_whole_on_a_phone(page: Any, site: Site, path: str) -> None:
    page.set_viewport_size({"width": 320, "height": 800})
    opened(page, path.format(control=site.control, sweep=site.sweep))
    box, title = (page.locator(place).bounding_box() for place in ("#plot", "#plot .xtitle"))
    assert box["x"] <= title["x"]
    assert title["x"] + title["width"] <= box["x"] + box["width"]
    assert title["y"] + title["height"] <= box["y"] + box["height"]
    page.set_viewport_size({"width": 1280, "height": 800})
    page.wait_for_function("() => !document.querySelector('#plot .xtitle tspan')")  # one line again


def test_a_tablet_has_the_arms_two_by_two(page: Any, site: Site) -> None:
    page.set_viewport_size({"width": 768, "height": 1024})
    page.goto(f"/sweeps/{site.sweep}")
    first, second = (row.bounding_box() for row in page.locator(".cards tbody tr").all()[:2])
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] < second["x"]
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 768


@pytest.fixture
def own_colours(page: Any) -> Iterator[Any]:
    page.emulate_media(forced_colors="active")
    yield page
    page.emulate_media(forced_colors="none")


def test_with_colours_of_ones_own_what_is_chosen_and_whose_a_line_is_can_be_seen(own_colours: Any, site: Site) -> None:
    page = own_colours
    opened(page, f"/sweeps/{site.sweep}?x=linear")
    chosen = page.locator(".segments input:checked + label")
    assert chosen.inner_text() == "linear"
    assert chosen.evaluate(PAINTED) != page.locator(".segments input:not(:checked) + label").first.evaluate(PAINTED)
    signs = page.locator(".keys .swatch").evaluate_all("all => all.map(s => getComputedStyle(s).borderTopColor)")
    assert len(signs) == len(set(signs)) == 2


def test_without_scripts_a_page_says_so_and_shows_nothing_that_does_nothing(
    chromium: Any, server: Server, site: Site
) -> None:
    page = windowed(chromium, server, java_script_enabled=False)
    for path in (f"/runs/{site.control}", f"/sweeps/{site.sweep}", "/alerts"):
        page.goto(path)
        assert page.locator(".notice:visible").inner_text().startswith("Without JavaScript no chart is drawn"), path
        assert page.locator("button:visible").all_inner_texts() == ["Log out"], path
        assert page.locator("[data-chart]:visible, .segments:visible").count() == 0, path
    page.goto("/runs")
    page.select_option("[name=state]", "queued")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**state=queued**")
    page.context.close()


def test_a_phone_does_not_zoom_in_on_what_is_typed(chromium: Any, server: Server, site: Site) -> None:
    page = windowed(chromium, server, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    for path in ("/runs", f"/runs/{site.control}"):  # iOS does where letters are smaller than 16 pixels
        page.goto(path)
        sizes = page.locator("input[type=search], input[type=text], input[type=number], select, textarea").evaluate_all(
            "all => all.map(each => parseFloat(getComputedStyle(each).fontSize))"
        )
        assert len(sizes) > 2
        assert min(sizes) >= 16, path
    page.context.close()


def test_a_finger_reads_what_a_mouse_is_held_over(chromium: Any, server: Server, site: Site) -> None:
    page = windowed(chromium, server, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    opened(page, f"/runs/{site.control}")
    hint = page.locator("#hint:popover-open")
    page.locator(".facts dt[title]", has_text="Ceiling A").tap()
    assert hint.inner_text() == "The pass rate that the curve approaches with ever more compute"
    box = hint.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert not overlap(box, page.locator(".facts dt[title]", has_text="Ceiling A").bounding_box())
    page.locator("h1").tap()
    assert hint.count() == 0
    page.get_by_role("button", name="Switch between light and dark").tap()  # what acts when it is pressed says no more
    assert hint.count() == 0
    page.context.close()


def test_a_phone_gives_its_chart_to_the_curve(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="early")
        seeding.add_evaluations(session, run, TRUTH, until=6, now=site.now)
        seeding.add_forecast(session, run, TRUTH, at=6.0, now=site.now)  # its ceiling is not identified
        path = f"/runs/{run.id}"
    page.set_viewport_size({"width": 390, "height": 844})
    for each in (path, f"/runs/{site.control}"):
        opened(page, each)
        whole, inner = page.evaluate("() => [plot.clientWidth, plot._fullLayout._size.w]")
        assert inner > 0.6 * whole
        label = page.locator("#plot .annotation-text-g", has_text="ceiling").bounding_box()
        assert label["x"] + label["width"] <= 390
