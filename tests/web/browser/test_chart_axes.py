"""The axes of a chart in a real browser: labels, what stands in place of compute, the part zoomed into."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import func, select, update

from server.metrics.models import Evaluation
from server.runs.models import Run
from tests.web import seeding
from tests.web.browsing import MARKS, TRUTH, Site, opened, traces, widths

pytestmark = MARKS

ARMS = "() => document.querySelector('#plot').data.filter(t => t.meta).map(({meta, x}) => ({meta, x}))"
AXIS = """() => {
    const {title, range, ticktext} = document.querySelector('#plot').layout.xaxis
    return {title: title.text, range, ticktext}
}"""


RANGES = "() => { const {xaxis, yaxis} = document.querySelector('#plot').layout; return [xaxis.range, yaxis.range] }"


def switched(page: Any, mode: str, title: str) -> dict[str, Any]:
    """The axis after a press on its switch."""
    page.click(f"label[for=x-{mode}]")
    page.wait_for_function(f"() => ({AXIS})().title.startsWith({title!r})")
    return dict(page.evaluate(AXIS))


def test_steps_and_time_stand_in_for_compute_and_go_on_at_the_pace_of_the_run(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")  # ten steps and two seconds an evaluation, which costs two units
    axis = switched(page, "steps", "steps")
    assert page.url.endswith("?x=steps")
    drawn = traces(page)
    assert drawn["evaluations"]["x"] == [10.0 * k for k in range(22)]
    assert drawn["fit"]["x"][-1] == drawn["forecast"]["x"][0] == 210.0
    assert drawn["at budget"]["x"] == [pytest.approx(300.0)]  # nobody has been there: 60 units at 5 steps a unit
    assert drawn["frozen"]["x"][-1] == pytest.approx(420.0)
    assert axis["range"][1] > 420.0
    assert axis["ticktext"][:2] == ["0", "50"]

    axis = switched(page, "time", "time since the first evaluation")
    drawn = traces(page)
    assert drawn["evaluations"]["x"][-1] == pytest.approx(42.0)
    assert drawn["at budget"]["x"] == [pytest.approx(60.0)]
    assert [text for text in ("0 s", "10 s", "1 min", "1 min 20 s") if text in axis["ticktext"]]
    opened(page, page.url)
    assert page.is_checked("#x-time")
    assert traces(page)["evaluations"]["x"][-1] == pytest.approx(42.0)
    page.focus("#x-time")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"() => ({AXIS})().title.startsWith('steps')")


def test_a_run_of_weeks_has_whole_days_on_its_time_axis(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        for evaluation in session.scalars(select(Evaluation).where(Evaluation.run_id == site.control)):
            evaluation.time = site.now + timedelta(hours=0.9 * evaluation.step)  # eight days
    opened(page, f"/runs/{site.control}?x=time")
    assert page.evaluate(AXIS)["ticktext"] == ["0 s", "2 d", "4 d", "6 d", "8 d", "10 d", "12 d", "14 d", "16 d"]


@pytest.mark.slow
def test_tokens_are_an_axis_where_every_evaluation_says_them(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}?x=tokens")
    assert not page.is_visible("label[for=x-tokens]")
    assert page.is_checked("#x-log")
    assert page.evaluate(AXIS)["title"].startswith("compute")
    with site.sessions.begin() as session:
        for evaluation in session.scalars(select(Evaluation).where(Evaluation.run_id == site.control)):
            evaluation.details = {**evaluation.details, "tokens": 8192.0 * evaluation.step}
    opened(page, f"/runs/{site.control}")
    axis = switched(page, "tokens", "tokens sampled")
    assert page.url.endswith("?x=tokens")
    drawn = traces(page)
    assert drawn["evaluations"]["x"] == [81920.0 * k for k in range(22)]
    assert drawn["forecast"]["x"][0] == 8192.0 * 210
    assert axis["range"][1] > drawn["frozen"]["x"][-1] == pytest.approx(8192.0 * 420)
    opened(page, f"/sweeps/{site.sweep}?x=tokens")  # the other arm does not say them
    assert not page.is_visible("label[for=x-tokens]")
    assert page.evaluate(AXIS)["title"].startswith("compute")


def test_in_steps_every_arm_of_a_sweep_stands_where_it_was(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        of_arm = update(Evaluation).where(Evaluation.run_id == site.arm)
        session.execute(of_arm.values(step=1000 + 3 * Evaluation.step))
    opened(page, f"/sweeps/{site.sweep}")
    switched(page, "steps", "steps")
    ends = {trace["meta"]: trace["x"][-1] for trace in page.evaluate(ARMS)}
    with site.sessions() as session:
        runs = (site.control, site.arm)
        steps = {run: session.scalar(select(func.max(Evaluation.step)).where(Evaluation.run_id == run)) for run in runs}
    assert {run: ends[run] for run in steps} == steps
    assert steps[site.arm] > steps[site.control]


@pytest.mark.parametrize(
    ("mode", "range"),
    [("linear", [40.1, 40.6]), ("log", [1.60315, 1.60853]), ("steps", [200.2, 200.4]), ("time", [41.1, 41.3])],
)
def test_labels_of_a_narrow_part_tell_its_ticks_apart(page: Any, site: Site, mode: str, range: list[float]) -> None:
    opened(page, f"/runs/{site.control}?x={mode}")
    page.evaluate("range => Plotly.relayout('plot', {'xaxis.range': range, 'yaxis.range': [0.701, 0.706]})", range)
    page.wait_for_function("() => document.querySelector('#plot').layout.xaxis.ticktext.every(t => t.includes('.'))")
    labels = page.evaluate(AXIS)["ticktext"]
    assert len(labels) == len(set(labels)) > 2
    rates = page.locator("#plot .ytick text").all_text_contents()
    assert len(rates) == len(set(rates)) > 2


@pytest.mark.parametrize("factor", [1.0, 1e5])
@pytest.mark.parametrize("width", widths(390, 820, 1280))
def test_labels_of_large_computes_keep_apart(page: Any, site: Site, factor: float, width: int) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="counted in steps")
        run.budget_compute, run.compute_unit = 110 * factor, "steps"
        seeding.add_evaluations(session, run, TRUTH, until=120, every=10.0, now=site.now)
        session.execute(
            update(Evaluation).where(Evaluation.run_id == run.id).values(compute=factor * Evaluation.compute)
        )
        path = f"/runs/{run.id}"
    page.set_viewport_size({"width": width, "height": 844})
    opened(page, path)
    boxes = [label.bounding_box() for label in page.locator("#plot .xtick text").all()]
    assert len(boxes) > 2
    for left, right in pairwise(sorted(boxes, key=lambda box: box["x"])):
        assert left["x"] + left["width"] + 2 < right["x"]


def test_of_one_evaluation_the_start_keeps_to_the_edge_of_the_axis(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="young")
        seeding.add_evaluations(session, run, TRUTH, until=0, now=site.now)
        path = f"/runs/{run.id}"
    opened(page, path)
    axis = page.evaluate(AXIS)
    assert axis["ticktext"] == ["0", "20", "30", "40", "50", "60", "70", "80", "90", "100", "150"]
    rule = page.evaluate("() => Math.log10(document.querySelector('#plot').layout.shapes[0].x0)")
    low, high = axis["range"]
    assert (rule - low) / (high - low) < 0.08


def test_the_part_zoomed_into_stands_in_the_url(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    whole = page.evaluate(RANGES)
    box = page.locator("#plot").bounding_box()
    page.mouse.move(box["x"] + 500, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 900, box["y"] + 300, steps=4)
    page.mouse.up()
    page.wait_for_function("() => location.search.includes('zoomy=')")
    part = page.evaluate(RANGES)
    assert part != whole

    opened(page, page.url)  # reload, or share
    assert page.evaluate(RANGES) == [pytest.approx(ends) for ends in part]
    page.mouse.dblclick(box["x"] + 500, box["y"] + 200)
    page.wait_for_function("() => !location.search.includes('zoom')")
    assert page.evaluate(RANGES) == whole

    opened(page, f"/runs/{site.control}?zoom=10..40")
    assert page.evaluate(RANGES) == [pytest.approx([1.0, 1.60206]), whole[1]]
    page.hover("#plot")
    page.click("[data-title='Reset the zoom']")
    page.wait_for_function("() => !location.search.includes('zoom')")
    assert page.evaluate(RANGES) == whole


@pytest.mark.slow
def test_a_zoom_goes_with_its_axis_and_what_is_no_range_is_passed_over(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}?zoom=10..40")
    switched(page, "steps", "steps")
    assert page.url.endswith("?x=steps")
    assert page.evaluate(RANGES)[0][0] < 0
    for nonsense in ("40..10", "-1..10", "10", "..", "a..b"):
        opened(page, f"/runs/{site.control}?zoom={nonsense}")
        assert page.get_attribute("#plot", "data-zoomed") is None


@pytest.mark.parametrize(("rate", "labels"), [(1.0, ("0.95", "1.00")), (0.0, ("0.00", "0.05"))])
def test_no_tick_stands_beyond_what_a_pass_rate_can_be(
    page: Any, site: Site, rate: float, labels: tuple[str, str]
) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="at the edge")
        seeding.add_evaluations(session, run, seeding.Truth(A=rate, R0=rate), until=30, now=site.now)
    opened(page, f"/runs/{run.id}")
    ticks = page.locator("#plot .ytick text").all_text_contents()
    assert set(labels) <= set(ticks)
    assert all(0 <= float(tick) <= 1 for tick in ticks)


def test_a_budget_is_told_as_it_was_given(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        session.get_one(Run, site.control).budget_compute = 61.25
        session.get_one(Run, site.arm).budget_compute = 1_234_567.5
    page.goto(f"/runs/{site.control}")
    page.wait_for_selector("#plot .annotation-text:has-text('at the budget, 61.25 CPU-seconds')")
    assert "of 61.25 CPU-seconds" in page.inner_text(".facts")
    page.goto(f"/sweeps/{site.sweep}")
    for said in ("61.25", "1,234,567.5"):
        page.wait_for_selector(f"#plot .annotation-text:has-text('budget {said}')")
        assert page.locator(f"td:has-text('/ {said}')").count() == 1


def test_before_the_first_mark_the_budget_ends_at_the_axis_too(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="begun")
        seeding.add_evaluations(session, run, TRUTH, until=0, now=site.now)
        run_id = run.id
    opened(page, f"/runs/{run_id}")
    edge = "([of, edge]) => Math.max(...[...document.querySelectorAll(of)].map(e => e.getBoundingClientRect()[edge]))"
    assert page.evaluate(edge, ["#plot .shapelayer path", "bottom"]) < page.evaluate(edge, ["#plot .xtick text", "top"])
