"""The chart of a sweep's arms and the table below it, in a real browser: few arms and forty."""

from __future__ import annotations

from typing import Any

import pytest

from server.runs.models import Run
from server.sweeps.models import Sweep
from tests.web import seeding
from tests.web.browsing import MARKS, Site, opened, traces

pytestmark = MARKS
NAMES = "() => [...document.querySelectorAll('#plot .annotation-text')].map(t => t.textContent)"


def test_the_overlay_draws_every_arm_and_remembers_which_were_hidden(page: Any, site: Site) -> None:
    drawn = opened(page, f"/sweeps/{site.sweep}")
    assert {"control", "control fit", "control forecast", "no-<b>cispo</b>"} <= set(drawn)
    neutral = page.evaluate("() => getComputedStyle(document.documentElement).getPropertyValue('--neutral').trim()")
    colour = "() => document.querySelector('#plot').data.find(t => t.name === 'control fit').line.color"
    red, green, blue = (int(neutral[place : place + 2], 16) for place in (1, 3, 5))
    assert page.evaluate(colour) == f"rgba({red}, {green}, {blue}, 1)"

    page.hover(f"tr[data-arm={site.arm}]")
    page.wait_for_function("() => document.querySelector('#plot').data.some(t => t.name.endsWith(' band90'))")
    assert "no-<b>cispo</b> band90" in traces(page)

    page.click(f"[data-key={site.control}]")
    page.wait_for_function("() => !document.querySelector('#plot').data.some(t => t.name === 'control')")
    assert page.get_attribute(f"[data-key={site.control}]", "aria-pressed") == "false"
    assert f"show={site.arm}" in page.url
    assert "control" not in opened(page, page.url)


def test_the_arrow_keys_go_along_an_arm_and_from_arm_to_arm(page: Any, site: Site) -> None:
    opened(page, f"/sweeps/{site.sweep}")
    said = page.locator("#chart [data-said]")
    page.focus("#plot")
    page.keyboard.press("ArrowDown")
    assert said.text_content().startswith("control, 0 CPU-seconds, step 0: pass rate 0.")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert said.text_content().startswith("control, 4 CPU-seconds, step 20: ")
    page.keyboard.press("ArrowDown")
    assert said.text_content().startswith("no-<b>cispo</b>, 4 CPU-seconds, step 20: ")
    assert "; the curve, 90 %: 0." in said.text_content()
    page.wait_for_selector("#plot .hoverlayer .hovertext:has-text('no-<b>cispo</b>')")
    page.keyboard.press("ArrowDown")
    assert said.text_content().startswith("no-<b>cispo</b>, 4 CPU-seconds"), "there is no further arm"
    page.keyboard.press("End")
    assert said.text_content().startswith("no-<b>cispo</b>, 30 CPU-seconds")
    page.keyboard.press("ArrowUp")
    assert said.text_content().startswith("control, 30 CPU-seconds, step 150: ")
    page.keyboard.press("Escape")
    assert said.text_content() == ""


def test_an_arm_whose_ceiling_is_not_identified_has_its_band_beyond_the_data_and_no_curve(
    page: Any, site: Site
) -> None:
    with site.sessions.begin() as session:
        arm = session.get_one(Run, site.arm)
        forecast = seeding.add_forecast(session, arm, seeding.Truth(A=0.6), at=30.0, now=site.now)
        forecast.summary = forecast.summary | {"ceiling_known": False}
    drawn = opened(page, f"/sweeps/{site.sweep}")
    name = "no-<b>cispo</b>"
    assert f"{name} forecast" not in drawn
    assert f"{name} lower90" in drawn
    assert {"control forecast", "control band90 beyond", f"{name} band90 beyond"} <= set(drawn)
    assert min(drawn[f"{name} band90 beyond"]["x"]) == 30.0
    low, high = page.evaluate("() => document.querySelector('#plot').layout.yaxis.range")
    assert low <= min(drawn[f"{name} band90 beyond"]["y"])
    assert max(drawn["control band90 beyond"]["y"]) <= high


@pytest.fixture
def wide(site: Site) -> str:
    """A sweep of forty arms whose names begin and end alike."""
    with site.sessions.begin() as session:
        sweep = seeding.add_sweep(session, "forty arms", now=site.now)
        for k in range(40):
            name = f"learning_rate={k + 1}e-5, clip_high=0.26, warm-up as the base recipe has it" if k else "control"
            changes = {"optimizer.learning_rate": (k + 1) * 1e-5} if k else None
            run = seeding.add_run(session, now=site.now, name=name, sweep=sweep, changes=changes)
            truth = seeding.Truth(A=0.6 + 0.005 * k)
            seeding.add_evaluations(session, run, truth, until=42, now=site.now, every=6.0)
            seeding.add_forecast(session, run, truth, at=42.0, now=site.now)
        return session.get_one(Sweep, sweep.id).id


@pytest.mark.slow
def test_of_forty_arms_twenty_are_drawn_and_the_others_are_a_press_away(page: Any, wide: str) -> None:
    opened(page, f"/sweeps/{wide}")
    said = page.locator("[data-drawn-count]")
    assert said.inner_text() == "20 of 40 drawn"
    names = [name for name in page.evaluate(NAMES) if "budget" not in name]
    assert len(names) == len(set(names)) == 20  # told apart, though they begin and end alike
    assert "…2e-5…" in names
    page.click("[data-draw=all]")
    page.wait_for_function("() => document.querySelector('[data-drawn-count]').textContent.startsWith('40')")
    page.wait_for_function("() => document.querySelector('#plot').data.filter(t => t.meta).length === 40")
    plot, boxes = page.locator("#plot").bounding_box(), page.locator("#plot .annotation").all()
    heights = sorted(box["y"] for box in (one.bounding_box() for one in boxes))
    assert plot["y"] <= heights[0]
    assert heights[-1] < plot["y"] + plot["height"] - 40  # above the axis
    page.click("[data-draw=none]")
    page.wait_for_function("() => document.querySelector('[data-drawn-count]').textContent.startsWith('0')")
    page.locator("[data-key]").nth(30).click()
    page.wait_for_function("() => document.querySelector('#plot').data.filter(t => t.meta).length === 1")
    opened(page, page.url)
    assert said.inner_text() == "1 of 40 drawn"


def test_the_seeds_of_an_arm_share_its_colour_and_have_a_sign_each(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        sweep = session.get_one(Sweep, site.sweep)
        truth = seeding.Truth(A=0.62)
        for seed in (1, 2):  # two that have one long name
            run = seeding.add_run(session, now=site.now, name="dapo in place of cispo" * 2, sweep=sweep)
            run.arm, run.seed, run.is_control = session.get_one(Run, site.arm).arm, seed, False
            seeding.add_evaluations(session, run, truth, until=42, now=site.now, seed=seed)
            seeding.add_forecast(session, run, truth, at=42.0, now=site.now)
    opened(page, f"/sweeps/{site.sweep}")
    marks = page.evaluate("() => plot.data.filter(t => t.meta).map(({marker: {symbol, color}}) => [symbol, color])")
    assert [symbol for symbol, _ in marks] == ["circle", "circle", "diamond-open", "x"]
    assert len({colour for _, colour in marks}) == 2
    keys = page.locator("[data-key]").all_inner_texts()
    assert [key.split()[0] for key in keys] == ["control", "●", "◇", "✕"]
    names = [name for name in page.evaluate(NAMES) if "dapo" in name]
    assert sorted(names) == ["◇ dapo in plac…ce of cispo (1)", "✕ dapo in plac…ce of cispo (2)"]
    assert page.get_by_text("seeds of one arm").is_visible()


def test_the_arms_are_sorted_by_a_press_on_a_head_and_the_chart_keeps_its_view(page: Any, wide: str) -> None:
    opened(page, f"/sweeps/{wide}")
    page.click("label[for=x-linear]")
    page.get_by_role("link", name="At the budget").click()
    page.wait_for_url("**sort=-end*")
    page.wait_for_selector("[data-chart][data-drawn]")
    assert page.is_checked("#x-linear")
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("At the budget")
    rows = page.locator("[data-arm] td.name a").all_inner_texts()
    assert rows[0].startswith("learning_rate=40e-5")
    assert rows[-1] == "control"
    assert page.evaluate("() => scrollY") > 0  # the table is in sight
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_label("Order").select_option("by name")
    page.wait_for_url("**sort=name*")
    assert page.locator("[data-arm] td.name a").first.inner_text() == "control"


@pytest.mark.slow
def test_arms_without_a_figure_come_last_however_they_are_sorted(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        sweep = session.get_one(Sweep, site.sweep)
        waiting = seeding.add_run(session, now=site.now, name="waits", sweep=sweep, status="queued").id
    for sort in ("rate", "-rate", "end", "-end", "ceiling", "-spent", "change"):
        page.goto(f"/sweeps/{site.sweep}?sort={sort}")
        order = page.locator("[data-arm]").evaluate_all("rows => rows.map(row => row.id)")
        assert order[-1] == waiting, sort
        assert len(order) == 3
