"""Runs are ticked in the list and laid over one another, by mouse and by keyboard, over filters, reload and Back."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from server.events.service import record
from server.runs.models import Run
from tests.web import seeding
from tests.web.browsing import MARKS, TRUTH, Site, opened, widths

pytestmark = MARKS


@pytest.fixture
def lone(site: Site) -> str:
    """A run of no sweep."""
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="control", changes={"optimizer.learning_rate": 1e-3})
        run.is_control = False
        seeding.add_evaluations(session, run, seeding.Truth(A=0.66), until=50, now=site.now, seed=4)
        seeding.add_forecast(session, run, seeding.Truth(A=0.66), at=50.0, now=site.now)
        return run.id


def tick(page: Any, run_id: str) -> Any:
    return page.locator(f'.tick[value="{run_id}"]')


def ticked(page: Any) -> list[str]:
    return parse_qs(urlsplit(page.url).query).get("run", [])


def evaluations_drawn(page: Any, site: Site) -> dict[str, int]:
    drawn = page.evaluate("() => document.querySelector('#plot').data.map((t) => [t.meta ?? '', t.x.length])")
    return {run: length for run, length in drawn if run in (site.control, site.arm)}


def bar(page: Any) -> str:
    return str(page.locator("#ticked [data-count]").inner_text())


def test_nothing_is_ticked_and_the_bar_comes_with_the_first_tick(page: Any, site: Site, lone: str) -> None:
    page.goto("/runs")
    assert page.locator(".tick:checked").count() == 0
    assert not page.locator("#ticked").is_visible()
    tick(page, site.control).check()
    assert bar(page) == "1 ticked: tick another"
    assert page.locator("#ticked .primary").is_disabled()
    tick(page, lone).check()
    page.click("#ticked .primary")
    page.wait_for_url("**/compare?*")
    assert sorted(ticked(page)) == sorted([site.control, lone])
    page.wait_for_selector("[data-chart][data-drawn]")
    page.go_back()
    page.wait_for_selector("#ticked:visible")
    assert bar(page) == "2 ticked"
    assert tick(page, lone).is_checked()


def test_ticks_stay_over_a_filter_a_sort_and_a_refresh(page: Any, site: Site, lone: str) -> None:
    page.goto(f"/runs?sweep={site.sweep}")
    tick(page, site.control).check()
    page.get_by_role("link", name="Run, difference from control").click()
    page.wait_for_url("**sort=name*")
    assert tick(page, site.control).is_checked()
    page.fill("[name=text]", "nothing of the kind")
    page.press("[name=text]", "Enter")
    page.wait_for_selector("text=No run passes these filters")
    assert bar(page) == "1 ticked, 1 of them not on this page: tick another"
    page.get_by_role("link", name="Show all runs").click()
    page.wait_for_selector("[data-live-sign][data-state=live]")
    tick(page, lone).check()
    with site.sessions.begin() as session:  # a refresh brings the list as its page was asked for
        session.get_one(Run, site.arm).status = "failed"
        record(session, "run.status", actor="trainer", run_id=site.arm, from_state="running", to_state="failed")
    page.wait_for_selector(f'tr#{site.arm} [data-state="failed"]')
    assert tick(page, lone).is_checked()
    assert tick(page, site.control).is_checked()
    assert bar(page) == "2 ticked"
    page.click("[data-untick]")
    assert ticked(page) == []
    assert not page.locator("#ticked").is_visible()


@pytest.mark.slow
def test_back_keeps_what_was_ticked_since_and_another_visit_begins_anew(page: Any, site: Site, lone: str) -> None:
    page.goto("/runs")
    tick(page, site.control).check()
    page.get_by_role("link", name="Run, difference from control").click()
    page.wait_for_url("**sort=name*")
    tick(page, lone).check()
    page.go_back()
    page.wait_for_selector("#ticked:visible")
    assert bar(page) == "2 ticked"
    assert ticked(page) == [site.control, lone]
    assert tick(page, lone).is_checked()
    tick(page, site.control).uncheck()
    page.locator(f'tr#{site.arm} a[href="/runs/{site.arm}"]').click()
    page.locator("#nav").get_by_role("link", name="Runs").click()
    page.wait_for_selector("[data-live-sign][data-state=live]")
    assert ticked(page) == []
    for _ in range(2):
        page.go_back()
    page.wait_for_selector("#ticked:visible")
    assert ticked(page) == [lone]
    page.go_forward()
    page.go_forward()
    page.wait_for_selector("[data-live-sign][data-state=live]")
    assert ticked(page) == []


def test_the_keyboard_ticks_and_enter_compares(page: Any, site: Site, lone: str) -> None:
    page.goto("/runs")
    for run_id in (site.control, lone):
        tick(page, run_id).focus()
        page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.wait_for_url("**/compare?*")
    assert page.locator("h1").inner_text() == "Compare 2 runs"


def test_more_than_can_be_compared_is_said_before_it_is_asked(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        runs = [seeding.add_run(session, now=site.now, name=f"r{at}", status="queued") for at in range(21)]
    page.goto("/runs?" + "&".join(f"run={run.id}" for run in runs))
    assert bar(page) == "21 ticked: at most 20 are compared"
    assert page.locator("#ticked .primary").is_disabled()
    tick(page, runs[0].id).uncheck()
    assert page.locator("#ticked .primary").is_enabled()


def test_a_link_with_runs_that_are_not_here_ticks_those_that_are(page: Any, site: Site, lone: str) -> None:
    page.goto(f"/runs?run=run_of_another_store&run={lone}&run={site.arm}")
    page.wait_for_selector("#ticked:visible")
    assert bar(page) == "2 ticked"
    assert ticked(page) == [lone, site.arm]
    page.click("#ticked .primary")
    page.wait_for_url("**/compare?*")
    assert page.locator("h1").inner_text() == "Compare 2 runs"


def test_runs_of_one_name_are_drawn_under_names_of_their_own(page: Any, site: Site, lone: str) -> None:
    drawn = opened(page, f"/compare?run={site.control}&run={site.arm}&run={lone}")
    assert {"control (loo-scalerl) fit", "no-<b>cispo</b> fit", "control fit"} <= set(drawn)
    assert page.locator("#plot .annotation", has_text="control (loo-scalerl)").count() == 1
    fits = "document.querySelector('#plot').data.filter(({name}) => name.endsWith(' fit'))"
    assert len(set(page.evaluate(f"() => {fits}.map(({{line}}) => line.color)"))) == 3


def test_another_control_and_a_run_less_are_a_press_away_and_back_undoes_them(page: Any, site: Site, lone: str) -> None:
    opened(page, f"/compare?run={site.control}&run={site.arm}&run={lone}")
    page.select_option("[name=control]", lone)
    page.wait_for_url(f"**control={lone}*")
    page.wait_for_selector("[data-chart][data-drawn]")
    assert page.locator("tbody tr").first.get_attribute("id") == lone
    page.locator(f"tr#{site.arm} .remove").click()
    page.wait_for_url(lambda url: site.arm not in url)
    assert page.locator("h1").inner_text() == "Compare 2 runs"
    page.go_back()
    page.wait_for_selector(f"tr#{site.arm}")
    assert page.locator("select[name=control]").input_value() == lone


@pytest.mark.slow
def test_another_control_and_a_run_less_keep_the_axis_and_what_is_hidden(page: Any, site: Site, lone: str) -> None:
    opened(page, f"/compare?run={site.control}&run={site.arm}&run={lone}")
    page.locator("label[for=x-linear]").click()
    page.locator(f'[data-key="{site.arm}"]').click()
    page.select_option("[name=control]", lone)
    page.wait_for_url(f"**control={lone}*")
    page.wait_for_selector("[data-chart][data-drawn]")
    assert page.locator("#x-linear").is_checked()
    assert page.locator(f'[data-key="{site.arm}"]').get_attribute("aria-pressed") == "false"
    page.locator(f"tr#{site.control} .remove").click()
    page.wait_for_url(lambda url: f"run={site.control}" not in url)
    page.wait_for_selector("[data-chart][data-drawn]")
    assert page.locator("#x-linear").is_checked()
    assert page.locator(f'[data-key="{site.arm}"]').get_attribute("aria-pressed") == "false"


def test_the_first_evaluation_is_drawn_as_wide_as_the_page(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        runs = [seeding.add_run(session, now=site.now, name=name) for name in ("one", "other")]
    page.goto("/compare?" + "&".join(f"run={run.id}" for run in runs))
    page.wait_for_selector("[data-chart-empty]:visible")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    with site.sessions.begin() as session:
        seeding.add_evaluations(session, runs[0], seeding.Truth(), until=20, now=site.now)
        record(session, "evaluation", actor="trainer", run_id=runs[0].id)
    page.wait_for_selector("[data-chart][data-drawn]")
    drawn = page.evaluate("() => document.querySelector('#plot .main-svg').getBoundingClientRect().width")
    assert drawn == page.evaluate("() => document.getElementById('plot').clientWidth")


@pytest.mark.slow
def test_the_page_follows_the_runs_it_shows_and_no_others(page: Any, site: Site, lone: str) -> None:
    opened(page, f"/compare?run={site.control}&run={lone}")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    with site.sessions.begin() as session:
        session.get_one(Run, lone).status = "succeeded"
        record(session, "run.status", actor="trainer", run_id=lone, from_state="running", to_state="succeeded")
    page.wait_for_selector(f'tr#{lone} [data-state="succeeded"]')


@pytest.mark.parametrize("path", ["/sweeps/{sweep}", "/compare?run={control}&run={arm}"])
def test_of_many_curves_those_that_went_on_are_fetched_anew(
    page: Any, site: Site, faults: list[str], path: str
) -> None:
    opened(page, path.format(sweep=site.sweep, control=site.control, arm=site.arm))
    page.wait_for_selector("[data-live-sign][data-state=live]")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "curves" in request.url else None)
    before = evaluations_drawn(page, site)
    grown = "run => document.querySelector('#plot').data.find((t) => t.meta === run)?.x.length > "
    with site.sessions.begin() as session:
        seeding.add_evaluations(session, session.get_one(Run, site.arm), TRUTH, until=36, now=site.now, after=30)
        record(session, "evaluation", actor="trainer", run_id=site.arm, sweep_id=site.sweep)
    page.wait_for_function(f"{grown}{before[site.arm]}", arg=site.arm)
    assert [parse_qs(urlsplit(url).query)["run_id"] for url in asked] == [[site.arm]]
    assert evaluations_drawn(page, site)[site.control] == before[site.control] > 0
    page.route("**/v1/*curves*", lambda route: route.abort())  # of what is lost nothing is known: all are asked for
    with site.sessions.begin() as session:
        seeding.add_evaluations(session, session.get_one(Run, site.control), TRUTH, until=46, now=site.now, after=42)
        record(session, "evaluation", actor="trainer", run_id=site.control, sweep_id=site.sweep)
    page.wait_for_selector("[data-chart-error]:visible")
    page.unroute("**/v1/*curves*")
    faults.clear()
    asked.clear()
    page.wait_for_function(f"{grown}{before[site.control]}", arg=site.control)
    assert asked == [page.evaluate("() => new URL(document.querySelector('#plot').dataset.curves, location).href")]


@pytest.mark.parametrize("path", ["/sweeps/{sweep}", "/compare?run={control}&run={lone}"])
def test_a_run_that_is_renamed_is_called_so_wherever_it_stands(page: Any, site: Site, lone: str, path: str) -> None:
    opened(page, path.format(sweep=site.sweep, control=site.control, lone=lone))
    page.wait_for_selector("[data-live-sign][data-state=live]")
    with site.sessions.begin() as session:
        session.get_one(Run, site.control).name = "<b>other</b>"
        record(session, "run.renamed", actor="test", run_id=site.control, sweep_id=site.sweep)
    page.wait_for_function("() => document.querySelector('#plot').data.some((t) => t.name === '<b>other</b>')")
    page.wait_for_selector(f"tr#{site.control} a:has-text('<b>other</b>')")
    assert page.inner_text(f'[data-key="{site.control}"]') == "<b>other</b>"
    if "compare" in path:  # they had one name, and were told apart by another
        assert page.inner_text(f'[data-key="{lone}"]') == "control"
        assert page.locator("[name=control] option").all_inner_texts() == ["<b>other</b>", "control"]


@pytest.mark.parametrize("width", widths(390, 1280))
def test_the_page_fits_its_window_and_paper(page: Any, site: Site, lone: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, f"/compare?run={site.control}&run={site.arm}&run={lone}")
    assert page.evaluate("() => document.documentElement.scrollWidth") == width
    with site.sessions.begin() as session:
        long = seeding.add_run(session, now=site.now, name=100 * "n")
        long.compute_unit = "steps"
    page.goto(f"/compare?run={site.control}&run={long.id}")
    assert page.evaluate("() => document.documentElement.scrollWidth") == width
    opened(page, f"/compare?run={site.control}&run={site.arm}&run={lone}")
    page.emulate_media(media="print")
    assert page.locator("button:not([data-key]), select, .remove").filter(visible=True).count() == 0
