"""What a person reads off a chart, in a real browser: hovers, labels that find room, who is who, a thumb's drag."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, select, update

from server.alerts.models import Alert
from server.dependencies import session_cookie
from server.forecasts.models import Forecast
from server.metrics.models import Evaluation
from server.runs.models import Run
from server.sweeps.models import Sweep
from tests.web import seeding
from tests.web.browsing import MARKS, Site, opened, widths

pytestmark = MARKS

POINT_AT = """([name, compute]) => {
    const plot = document.querySelector('#plot')
    const trace = plot.data.find(t => t.name === name)
    const at = trace.x.findIndex(x => x >= compute)
    const {xaxis, yaxis} = plot._fullLayout
    const {left, top} = plot.getBoundingClientRect()
    return [left + xaxis._offset + xaxis.d2p(trace.x[at]), top + yaxis._offset + yaxis.d2p(trace.y[at])]
}"""
PLOT = """() => {
    const {left, right, top, bottom} = document.querySelector('#plot .nsewdrag').getBoundingClientRect()
    return {left, right, top, bottom}
}"""

BARS = """() => [...document.querySelectorAll('#plot .errorbar')].map(bar => {
    const {left, top, bottom} = bar.getBoundingClientRect()
    return {left, top, bottom}
})"""
SLOW = seeding.Truth(C_mid=20.0, B=2.0)
RANGES = "() => { const {xaxis, yaxis} = document.querySelector('#plot').layout; return [xaxis.range, yaxis.range] }"


def hovered(page: Any, name: str, compute: float) -> str:
    """What stands at the pointer over a trace, at a compute or a little further; its lines joined without a space."""
    page.mouse.move(0, 0)
    page.wait_for_selector("#plot .hoverlayer .hovertext", state="detached")
    page.mouse.move(*page.evaluate(POINT_AT, [name, compute]))
    page.wait_for_selector("#plot .hoverlayer .hovertext")
    return str(page.locator("#plot .hoverlayer .hovertext").first.text_content())


def label(page: Any, text: str) -> dict[str, float]:
    """The box of the text at a chart that holds these words."""
    box = page.locator("#plot .annotation-text", has_text=text).bounding_box()
    return {
        "left": box["x"],
        "right": box["x"] + box["width"],
        "top": box["y"],
        "bottom": box["y"] + box["height"],
    }


def test_a_hover_tells_compute_and_interval_of_the_fit_the_forecast_and_the_frozen_one(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    fit = hovered(page, "fit", 16.5)  # the frozen forecast lies on it
    forecast = hovered(page, "forecast", 70)
    for said in (fit, forecast):
        assert " CPU-seconds" in said
        assert "90 %: 0." in said
    assert "fit 0.59990 %: 0.589 to 0.608" in fit
    assert "forecast 0.7490 %" in forecast  # no more digits than the interval has
    frozen = page.evaluate("() => document.querySelector('#plot').data.find(t => t.name === 'frozen')")
    said = "%{customdata[0]} CPU-seconds<br>frozen forecast %{customdata[1]}<br>90 %: %{customdata[2]}<br>made "
    assert frozen["hovertemplate"].startswith(said)
    assert len(frozen["customdata"]) == len(frozen["x"])
    assert "60 CPU-seconds, the budget" in hovered(page, "at budget", 60)


def test_an_early_regime_is_grey_an_outlier_hollow_and_both_say_so(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        run = session.get_one(Run, site.control)
        computes = sorted(session.scalars(select(Evaluation.compute).where(Evaluation.run_id == run.id)))
        forecast = session.scalars(
            select(Forecast).where(Forecast.run_id == run.id).order_by(Forecast.id.desc())
        ).first()
        assert forecast is not None
        early = {"compute": computes[3], "evaluations": 3, "probability": 0.97}
        forecast.summary = forecast.summary | {"cutoff": early, "outliers": [computes[6]]}
    opened(page, f"/runs/{site.control}")
    fills, edges, ink, quiet = page.evaluate(
        """() => { const {marker} = document.querySelector('#plot').data.find(t => t.name === 'evaluations')
                   const read = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
                   return [marker.color, marker.line.color, read('--ink'), read('--quiet')] }"""
    )
    assert edges[:8] == [quiet] * 3 + [ink] * 5
    assert len(set(fills[:3])) == 1
    assert len({fills[0], fills[3], fills[6]}) == 3
    assert fills[3] == fills[5] == fills[7]
    assert "does not follow the curve" in hovered(page, "evaluations", computes[1])
    assert "outlier: hardly counts" in hovered(page, "evaluations", computes[6])
    assert "does not follow the curve" not in hovered(page, "evaluations", computes[8])


def test_in_a_sweep_the_forecast_beyond_the_data_can_be_read(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        forecast = seeding.add_forecast(
            session, session.get_one(Run, site.arm), seeding.Truth(A=0.6), at=30.0, now=site.now
        )
        forecast.summary = forecast.summary | {"ceiling_known": False}
    opened(page, f"/sweeps/{site.sweep}")
    said = hovered(page, "control forecast", 70)
    assert said.startswith("control")
    assert "forecast 0.74" in said
    assert "90 %: 0.72 to 0.7" in said
    edge = hovered(page, "no-<b>cispo</b> upper90", 60)
    assert edge.startswith("no-<b>cispo</b>")
    assert "forecast, 90 %: 0." in edge
    assert "ceiling not identified" in edge


def test_arms_that_share_a_colour_differ_in_line_and_symbol(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        sweep = session.get_one(Sweep, site.sweep)
        for k in range(12):
            changes = {"algorithm.loss": "dapo"}
            arm = seeding.add_run(session, now=site.now, name=f"arm-{k}", sweep=sweep, changes=changes)
            truth = seeding.Truth(A=0.4 + 0.02 * k)
            seeding.add_evaluations(session, arm, truth, until=30, now=site.now, every=3.0)
            seeding.add_forecast(session, arm, truth, at=30.0, now=site.now)
    opened(page, f"/sweeps/{site.sweep}")
    looks = page.evaluate(
        """() => { const {data} = document.querySelector('#plot')
                   return data.filter(t => t.meta).map(({name, marker}) => {
                     const {color, dash} = data.find(t => t.name === `${name} fit`).line
                     return [color, dash, marker.symbol] }) }"""
    )
    assert len(looks) == 14
    assert len({(colour, dash) for colour, dash, _ in looks}) == 14
    assert len({(colour, symbol) for colour, _, symbol in looks}) == 14
    assert "1px,3px" not in {dash for _, dash, _ in looks}  # the edges of what is not identified


def test_alerts_at_one_evaluation_share_a_bell(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        session.execute(update(Alert).where(Alert.run_id == site.arm).values(resolved_at=site.now))
        arm = session.get_one(Run, site.arm)
        alert = seeding.add_alert(session, arm, since=28, at=28, now=site.now, delivered=False)
        alert.kind = "run_failed"
        newest = alert.id
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, f"/runs/{site.arm}")
    marks = page.evaluate("() => document.querySelector('#plot').layout.annotations.filter(a => a.name)")
    assert [mark["name"] for mark in marks] == [newest]
    assert marks[0]["text"].startswith("alert: run failed<br>")
    assert "alert: below forecast, resolved" in marks[0]["text"]
    assert label(page, "run failed")["left"] > 0
    bells = page.evaluate("() => document.querySelector('#plot').layout.shapes.filter(s => s.name === 'bell')")
    assert len(bells) == 1


def test_a_bell_leads_to_its_alert_also_where_the_page_lists_only_newer_ones(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        oldest = session.scalars(select(Alert.id).where(Alert.run_id == site.arm)).one()
        said = {"run_id": site.arm, "level": "ALERT", "title": "t", "text": "t", "evidence": {}, "opened_at": site.now}
        session.add_all(Alert(kind="failed", resolved_at=site.now, **said) for _ in range(20))
    opened(page, f"/runs/{site.arm}?x=steps")
    marks = page.evaluate("() => document.querySelector('#plot').layout.annotations.filter(a => a.name)")
    assert [mark["name"] for mark in marks] == [oldest]
    assert page.locator(f"#{oldest}").count() == 0
    page.locator("#plot .annotation-text-g", has_text="below forecast").click(timeout=5000)
    page.wait_for_url(f"**/runs/{site.arm}?x=steps&alert={oldest}#{oldest}")
    assert page.locator(f"#{oldest}").is_visible()


def test_an_alert_that_is_settled_is_not_told_as_one_that_waits_where_the_run_came_back(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        session.execute(update(Alert).where(Alert.run_id == site.arm).values(resolved_at=site.now, back_since=30.0))
        arm = session.get_one(Run, site.arm)
        seeding.add_alert(session, arm, since=28, at=28, now=site.now, delivered=False).back_since = 30.0
    opened(page, f"/runs/{site.arm}")
    marks = page.evaluate("() => document.querySelector('#plot').layout.annotations.filter(a => a.name)")
    assert marks[0]["text"].startswith("alert: below forecast, back<br>")
    assert "alert: below forecast, resolved" in marks[0]["text"]


def test_a_name_is_no_template_of_a_hover(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        session.get_one(Run, site.arm).name = "arm %{y} 50 %"
    opened(page, f"/sweeps/{site.sweep}")
    assert hovered(page, "arm %{y} 50 %", 10).startswith("arm %{y} 50 %")


@pytest.mark.parametrize("width", widths(390, 1280))
def test_labels_stay_where_there_is_room(page: Any, site: Site, width: int) -> None:
    truth = seeding.Truth(A=0.99, B=2.2, C_mid=3.0)
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="saturated")
        seeding.add_evaluations(session, run, truth, until=60, now=site.now)
        seeding.add_forecast(session, run, truth, at=60.0, now=site.now)
        path = f"/runs/{run.id}"
    page.set_viewport_size({"width": width, "height": 844})
    opened(page, path)
    plot = page.evaluate(PLOT)
    ceiling, budget = label(page, "ceiling"), label(page, "at the budget")
    assert plot["top"] - 4 < ceiling["top"]
    assert ceiling["right"] < width
    assert plot["left"] < budget["left"] < budget["right"] < plot["right"]


def test_the_name_of_the_start_stands_on_the_side_where_the_curve_is_not(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        of_start = Evaluation.run_id == site.control, Evaluation.compute == 0
        session.execute(delete(Evaluation).where(*of_start))
        forecast = session.get_one(Forecast, session.get_one(Run, site.control).forecast_id)
        forecast.summary = forecast.summary | {"R0": {"median": 0.25, "lower": 0.24, "upper": 0.26}}
    opened(page, f"/runs/{site.control}")
    at_start = page.evaluate(POINT_AT, ["fit", 0])[1]
    assert label(page, "R0")["bottom"] < at_start


@pytest.mark.parametrize("width", widths(390, 1280))
def test_the_name_of_the_start_covers_no_evaluation_with_its_bar(page: Any, site: Site, width: int) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="slow to start")
        seeding.add_evaluations(session, run, SLOW, until=42, now=site.now, every=0.5)
        seeding.add_forecast(session, run, SLOW, at=42.0, now=site.now)
        path = f"/runs/{run.id}"
    page.set_viewport_size({"width": width, "height": 844})
    opened(page, path)
    name = label(page, "R0")
    beside = [bar for bar in page.evaluate(BARS) if name["left"] < bar["left"] < name["right"]]
    assert beside
    assert all(bar["bottom"] < name["top"] or bar["top"] > name["bottom"] for bar in beside)


def test_a_run_with_its_start_alone_is_drawn_on_a_phone(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="just begun")
        seeding.add_evaluations(session, run, seeding.Truth(), until=0, now=site.now)
        path = f"/runs/{run.id}"
    page.set_viewport_size({"width": 390, "height": 844})
    drawn = opened(page, path)
    assert len(drawn["evaluations"]["y"]) == 1
    assert page.locator("#plot .annotation-text", has_text="at the budget").count() == 1
    assert page.locator("summary", has_text="1 evaluation as a table").count() == 1
    page.focus("#plot")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#plot .hoverlayer .hovertext:has-text('pass rate 0.')")
    assert "the curve" not in page.locator("#plot .hoverlayer .hovertext").text_content()  # there is none yet


def test_a_thumb_on_the_chart_scrolls_the_page(browser: Any, site: Site) -> None:
    context = browser.browser.new_context(
        base_url=site.url, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    (cookie,) = [each for each in browser.cookies() if each["name"] == session_cookie(site.url)]
    context.add_cookies([{"name": session_cookie(site.url), "value": cookie["value"], "url": site.url}])
    page = context.new_page()
    page.set_default_timeout(60_000)
    opened(page, f"/runs/{site.control}")
    before = page.evaluate(RANGES)
    box = page.locator("#plot").bounding_box()
    thumb = context.new_cdp_session(page)

    def touch(kind: str, *points: dict[str, float]) -> None:
        thumb.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    touch("touchStart", {"x": 200, "y": box["y"] + 250})
    for step in range(1, 11):
        touch("touchMove", {"x": 200, "y": box["y"] + 250 - 25 * step})
    touch("touchEnd")
    page.wait_for_function("() => scrollY > 100")
    assert page.evaluate(RANGES) == before
    assert page.get_attribute("#plot", "data-zoomed") is None
    context.close()


def said(page: Any) -> str:
    return str(page.locator("#chart [data-said]").text_content())


def test_the_arrow_keys_go_from_evaluation_to_evaluation_and_read_them_out(page: Any, site: Site) -> None:
    drawn = opened(page, f"/runs/{site.control}")["evaluations"]
    page.focus("#plot")
    page.keyboard.press("ArrowRight")
    assert said(page).startswith(f"0 CPU-seconds, step 0: pass rate {drawn['y'][0]:.3f} ± 0.0")
    page.keyboard.press("ArrowRight")
    second = said(page)
    assert second.startswith("2 CPU-seconds, step 10: ")
    assert "; the curve, 90 %: 0." in second
    page.wait_for_selector("#plot .hoverlayer .hovertext:has-text('2 CPU-seconds · step 10pass rate')")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert said(page).startswith("0 CPU-seconds"), "the first is the end of it"
    page.keyboard.press("End")
    assert said(page).startswith("42 CPU-seconds, step 210: ")
    page.keyboard.press("Tab")
    assert said(page) == ""
    page.wait_for_selector("#plot .hoverlayer .hovertext", state="detached")


def test_the_arrow_keys_stay_within_the_zoom(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}?x=linear")
    page.evaluate("() => Plotly.relayout(document.querySelector('#plot'), {'xaxis.range': [10.5, 20.5]})")
    page.focus("#plot")
    page.keyboard.press("Home")
    assert said(page).startswith("12 CPU-seconds, ")
    page.keyboard.press("End")
    assert said(page).startswith("20 CPU-seconds, ")
