"""The chart island in a real browser. What a chart shows is read from Plotly, which keeps its traces on the element."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from server.access.service import mint, revoke
from server.dependencies import session_cookie
from server.forecasts.models import Forecast
from server.runs.models import Run
from tests.web import seeding
from tests.web.browsing import MARKS, TRUTH, Site, opened, refreshed_twice, report, traces

pytestmark = MARKS
POINTS = "() => document.querySelector('#plot').data.find(t => t.name === 'evaluations')"


def test_the_chart_of_a_run_holds_its_evaluations_the_forecast_and_the_band(page: Any, site: Site) -> None:
    drawn = opened(page, f"/runs/{site.control}")
    points = drawn["evaluations"]
    assert len(points["x"]) == 22
    assert points["x"][1:] == [2.0 * k for k in range(1, 22)]
    assert 0 < points["x"][0] < 1.0  # compute 0 stands in its gutter, left of the curve's first compute
    assert all(0.005 < se < 0.02 for se in points["se"])

    fit, forecast = drawn["fit"], drawn["forecast"]
    assert (fit["dash"], forecast["dash"]) == ("solid", "6px,4px")
    assert fit["x"][-1] == forecast["x"][0] == 42.0
    for compute, rate in zip([*fit["x"], *forecast["x"]], [*fit["y"], *forecast["y"]], strict=True):
        assert rate == pytest.approx(TRUTH(compute), abs=0.002)

    for part in ("", " beyond"):
        inner, outer = drawn[f"band50{part}"], drawn[f"band90{part}"]
        half = len(outer["x"]) // 2
        upper, lower = outer["y"][:half], outer["y"][half:][::-1]
        assert all(low < TRUTH(x) < high for low, x, high in zip(lower, outer["x"][:half], upper, strict=True))
        assert max(inner["y"]) < max(outer["y"])
    beyond = drawn["band90 beyond"]
    half = len(beyond["x"]) // 2
    widths = [up - low for up, low in zip(beyond["y"][:half], beyond["y"][half:][::-1], strict=True)]
    assert widths[-1] > 1.5 * widths[0]  # less sure the further out

    assert drawn["frozen"]["x"][-1] == pytest.approx(84.0)
    assert drawn["checkpoints"]["x"] == [20.0]
    assert drawn["refits"]["x"] == [12.0, 22.0, 42.0]
    assert drawn["at budget"]["x"] == [60.0]
    said = page.evaluate("() => document.querySelector('#plot').layout.annotations.map(a => a.text).join(' ')")
    assert "at the budget, 60 CPU-seconds" in said
    assert "(90 %: 0.72 to 0.75)" in said  # the expected end
    assert "compute (CPU-seconds)" in page.locator("#plot").inner_text()


def test_at_the_budget_stands_the_end_that_past_runs_tell_and_the_curves_own_beside_it(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        control = session.get_one(Run, site.control)
        seeding.add_forecast(session, control, seeding.Truth(), at=42.0, now=site.now, past_runs=12)
        ending = session.get_one(Forecast, control.forecast_id).summary["at_budget"]["calibrated"]
    bar = opened(page, f"/runs/{site.control}")["at budget"]
    assert bar["y"] == [ending["median"]]
    assert bar["se"][0] == pytest.approx(ending["upper"] - ending["median"])
    said = page.evaluate("() => document.querySelector('#plot').layout.annotations.map(a => a.text).join(' ')")
    assert f"(90 %: {ending['lower']:.2f} to {ending['upper']:.2f})" in said
    hover = page.evaluate("() => document.querySelector('#plot').data.find(t => t.name === 'at budget').hovertemplate")
    assert "calibrated on 12 past runs<br>the curve by itself: 0.73" in hover


def test_the_axis_is_switched_and_the_url_remembers(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    kind = "() => document.querySelector('#plot').layout.xaxis.type"
    assert page.evaluate(kind) == "log"
    page.click("label[for=x-linear]")
    page.wait_for_function(f"() => ({kind})() === 'linear'")
    assert page.url.endswith("?x=linear")
    assert traces(page)["evaluations"]["x"][0] == 0.0

    opened(page, page.url)  # reload, or share
    assert page.evaluate(kind) == "linear"
    assert page.is_checked("#x-linear")
    page.click("label[for=x-log]")
    page.wait_for_function(f"() => ({kind})() === 'log'")
    assert "x=" not in page.url


def test_a_new_evaluation_appears_by_itself_and_the_zoom_survives(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    ranges = (
        "() => { const {xaxis, yaxis} = document.querySelector('#plot').layout; return [xaxis.range, yaxis.range] }"
    )
    before = page.evaluate(ranges)
    box = page.locator("#plot").bounding_box()
    page.mouse.move(box["x"] + 500, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 900, box["y"] + 300, steps=4)
    page.mouse.up()
    page.wait_for_function("() => document.querySelector('#plot').dataset.zoomed === 'log'")
    zoomed = page.evaluate(ranges)
    assert zoomed != before

    report(site, 44.0, 0.7125)
    page.wait_for_function(f"() => ({POINTS})().x.length === 23")
    points = traces(page)["evaluations"]
    assert (points["x"][-1], points["y"][-1]) == (44.0, 0.7125)
    assert page.evaluate(ranges) == zoomed
    page.wait_for_function("() => document.querySelector('.facts').innerText.includes('44 CPU-seconds')")

    with site.sessions.begin() as session:  # what a refit writes
        seeding.add_forecast(session, session.get_one(Run, site.control), seeding.Truth(A=0.7), at=44.0, now=site.now)
    page.wait_for_function("() => document.querySelector('.sentence').innerText.startsWith('Ceiling 0.70')")
    page.wait_for_function("() => document.querySelector('#plot').data.find(t => t.name === 'forecast').x[0] === 44")


@pytest.mark.slow
def test_a_page_that_nobody_looks_at_asks_for_nothing(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("() => Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    with page.expect_event("console", lambda said: said.text == "change seen"):
        page.evaluate(
            """() => { const own = new EventSource('/v1/stream?since=' + document.body.dataset.cursor);
                       own.addEventListener('change', () => {
                         own.close();
                         setTimeout(() => console.log('change seen'), 2500) }) }"""
        )
        report(site, 44.0, 0.7)
    assert [url for url in asked if url.endswith("/curve")] == []
    with page.expect_request("**/curve"):
        page.evaluate(
            """() => { Object.defineProperty(document, 'hidden', {value: false, configurable: true});
                       document.dispatchEvent(new Event('visibilitychange')) }"""
        )


def test_a_page_that_lost_its_stream_takes_it_up_where_it_stopped(page: Any, site: Site, faults: list[str]) -> None:
    asked: list[str] = []
    state = {"up": False}

    def stream(route: Any) -> None:
        asked.append(route.request.url)
        if state["up"]:
            route.continue_()
        else:
            route.fulfill(status=503, body="restarting")

    page.route("**/v1/stream*", stream)
    opened(page, f"/runs/{site.control}")
    page.wait_for_selector("[data-live-sign][data-state=offline]")
    report(site, 44.0, 0.7)  # while nobody listens
    state["up"] = True
    page.wait_for_selector("[data-live-sign][data-state=live]")
    page.wait_for_function(f"() => ({POINTS})().x.length === 23")
    assert len(asked) > 1
    assert len(set(asked)) == 1  # it asks for what happened since the page was made
    faults[:] = [fault for fault in faults if "503" not in fault]  # the browser's own note of the refusal


def test_of_two_answers_the_one_that_was_asked_for_later_is_shown(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    earlier, later = refreshed_twice(page, "**/curve")
    view = earlier.fetch().json()
    for route, points in ((later, 12), (earlier, 9)):
        with page.expect_response("**/curve"):
            route.fulfill(json=view | {"points": view["points"][:points]})
        page.evaluate("() => new Promise(done => setTimeout(() => requestAnimationFrame(done)))")
        page.wait_for_function(f"() => ({POINTS})().x.length === 12", timeout=5000)


def test_the_slider_shows_the_forecast_as_it_was(page: Any, site: Site) -> None:
    newest = opened(page, f"/runs/{site.control}")
    assert newest["fit"]["x"][-1] == 42.0
    page.focus("#replay")
    page.keyboard.press("Home")  # by keyboard, as anybody may
    page.wait_for_function("() => document.querySelector('#plot').data.find(t => t.name === 'fit').x.at(-1) === 12")
    then = traces(page)
    widths = [trace["band90"]["y"][0] - trace["band90"]["y"][-1] for trace in (then, newest)]
    assert widths[0] > widths[1]  # it was less sure then
    assert "as it was at 12 CPU-seconds" in page.inner_text("[data-replay] output")
    assert "ceiling not identified (90 %: 0." in page.inner_text("[data-replay] output")
    assert "at=fct_" in page.url

    opened(page, page.url)
    page.wait_for_function("() => document.querySelector('#plot').data.find(t => t.name === 'fit')?.x.at(-1) === 12")
    page.focus("#replay")
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('#plot').data.find(t => t.name === 'fit').x.at(-1) === 42")
    assert "at=" not in page.url


def test_a_run_that_began_anew_shows_no_forecast_and_says_so(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        session.get_one(Run, site.control).forecast_id = None  # as a refit leaves an attempt that is too short for one
    drawn = opened(page, f"/runs/{site.control}")
    assert "fit" not in drawn
    said = "no forecast; the last, of evaluations that count no more, was at 42 CPU-seconds"
    assert page.inner_text("[data-replay] output") == said


@pytest.mark.slow
def test_a_link_to_a_frozen_forecast_shows_it_and_one_to_another_runs_says_so(
    page: Any, site: Site, faults: list[str]
) -> None:
    with site.sessions.begin() as session:
        control = session.get_one(Run, site.control)
        frozen = control.frozen_forecast_id  # that of 22; another is said of the same evaluations with past runs
        seeding.add_forecast(session, control, TRUTH, at=22.0, now=site.now)
        session.flush()
        control.frozen_forecast_id = frozen
        seeding.add_forecast(session, control, TRUTH, at=42.0, now=site.now)
        other = session.get_one(Run, site.arm).forecast_id
    opened(page, f"/runs/{site.control}?at={frozen}")
    assert "as it was at 22 CPU-seconds" in page.inner_text("[data-replay] output")
    assert page.input_value("#replay") != page.get_attribute("#replay", "max")
    for at in (other, "fct_nowhere"):
        opened(page, f"/runs/{site.control}?at={at}")
        said = page.inner_text("[data-replay] output")
        assert said == "this run has no such forecast; newest forecast, at 42 CPU-seconds"
    faults[:] = [fault for fault in faults if "404" not in fault]  # the browser's own note of it


def test_a_run_with_a_budget_and_no_evaluations_has_no_chart(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="none yet").id
    page.goto(f"/runs/{run}")
    page.wait_for_selector("[data-chart-empty]:visible")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    assert not page.locator("#plot").is_visible()
    assert page.locator("#plot .main-svg").count() == 0
    assert not page.locator(".chart-controls").is_visible()  # an axis of nothing is not switched


def test_an_alert_is_marked_on_the_curve_with_names_as_text(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.arm}")
    marks = page.evaluate("() => document.querySelector('#plot').layout.annotations.filter(a => a.name)")
    assert [mark["text"] for mark in marks] == ["alert: below forecast"]
    assert marks[0]["name"].startswith("alr_")
    bells = page.evaluate("() => document.querySelector('#plot').layout.shapes.filter(s => s.name === 'bell')")
    assert [bell["xanchor"] for bell in bells] == [28.0]
    assert page.inner_text("h1") == "no-<b>cispo</b>"


def test_where_the_forecast_is_withheld_nothing_is_drawn_beyond_the_data(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        run = session.get_one(Run, site.control)
        seeding.add_forecast(session, run, TRUTH, at=42.0, now=site.now, misfit="decline")
    drawn = opened(page, f"/runs/{site.control}")
    assert set(drawn) == {"frozen lower90", "frozen upper90", "frozen", "evaluations", "refits", "checkpoints"}
    assert max(x for trace in drawn.values() for x in trace["x"]) == 42.0
    assert drawn["frozen"]["x"][-1] > 35.0
    said = page.evaluate("() => document.querySelector('#plot').layout.annotations.map(a => a.text).join(' ')")
    assert "forecast withheld" in said
    assert "ceiling" not in said
    assert "R0" not in said
    assert page.locator("[data-fit-key]:visible").count() == 0
    assert "control" in opened(page, f"/sweeps/{site.sweep}")
    assert not {"control fit", "control forecast"} & set(traces(page))


def test_a_run_is_stopped_by_a_button_that_asks_first(page: Any, site: Site) -> None:
    def wanted() -> str:
        with site.sessions() as session:
            return session.get_one(Run, site.control).desired_state

    opened(page, f"/runs/{site.control}")
    page.click("text=Stop")
    page.click("text=Keep as it is")
    assert wanted() == "run"
    page.click("text=Stop")
    page.fill("dialog input", "the ceiling is known")
    page.click("text=Stop the run")
    page.wait_for_selector("text=stop asked for")
    assert wanted() == "stop"
    assert page.locator("text=the ceiling is known").count() >= 1
    assert page.locator("button[data-action$=':stop']").count() == 0
    page.click("text=Cancel")  # it may not react
    page.click("text=Cancel the run")
    page.wait_for_selector("text=cancel asked for")
    assert wanted() == "cancel"
    assert page.locator("button[data-action$=':cancel']").count() == 0


@pytest.mark.slow
def test_a_run_is_paused_and_goes_on_by_buttons(page: Any, site: Site) -> None:
    def wanted() -> tuple[str, str | None]:
        with site.sessions() as session:
            run = session.get_one(Run, site.control)
            return run.desired_state, run.desired_reason

    opened(page, f"/runs/{site.control}")
    page.click("button[data-action$=':pause']")
    page.fill("dialog input", "others come first")
    page.click("text=Pause the run")
    page.wait_for_selector("text=pause asked for")
    assert wanted() == ("pause", "others come first")
    with site.sessions.begin() as session:
        session.get_one(Run, site.control).status = "paused"  # as the reconciler finds it in the end
    opened(page, f"/runs/{site.control}")
    page.click("button[data-action$=':resume']")
    page.wait_for_selector("button[data-action$=':pause']")
    assert wanted()[0] == "run"


def test_a_run_is_renamed_by_a_button_that_asks_for_the_name(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    page.click("text=Rename")
    assert page.input_value("dialog input") == "control"
    page.keyboard.type("the <b>control</b>")  # over the old name, which is selected
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('the <b>control</b>')")
    with site.sessions() as session:
        assert session.get_one(Run, site.control).name == "the <b>control</b>"


def test_enter_in_the_dialog_does_what_the_dialog_asks(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    page.focus("button[data-action$=':stop']")
    page.keyboard.press("Enter")
    page.keyboard.type("the ceiling is known")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=stop asked for")
    assert page.locator("text=the ceiling is known").count() >= 1


def test_over_plain_http_from_another_host_one_logs_in_and_presses_buttons(browser: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        _, token = mint(session, kind="api", name="a person", scopes=["operate"], now=site.now)
    context = browser.browser.new_context(base_url=site.url.replace("127.0.0.1", "forecurve.test"))
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"/runs/{site.control}")
    assert page.evaluate("() => isSecureContext") is False
    page.fill("[name=token]", token)
    page.click("text=Log in >> nth=-1")
    page.wait_for_selector("[data-live-sign][data-state=live]")  # a button that nobody listens to yet asks nothing
    page.click("text=Stop")
    page.click("text=Stop the run")
    page.wait_for_selector("text=stop asked for")
    context.close()


def test_a_page_whose_session_is_revoked_goes_to_the_login(browser: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        token, secret = mint(session, kind="session", name="a guest", scopes=["read"], now=site.now)
    context = browser.browser.new_context(base_url=site.url)
    context.add_cookies([{"name": session_cookie(site.url), "value": secret, "url": site.url}])
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto("/runs")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    with site.sessions.begin() as session:
        revoke(session, token.id, actor="test", now=site.now)
    page.wait_for_url("**/login?next=%2Fruns")
    context.close()


def test_a_run_is_forked_by_a_form_and_listed_below_it(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    page.click("text=Fork the run from a checkpoint")
    page.fill("#new-fork textarea", "no change")
    page.click("#new-fork button")
    page.wait_for_selector("#notice[data-kind=error]")
    assert "write it as field = value" in page.inner_text("#notice")
    box = page.locator("#notice").bounding_box()
    assert (
        0 <= box["y"] < page.viewport_size["height"] - box["height"]
    )  # in sight, though the form is far down the page
    assert page.locator("#fork-steps option").get_attribute("value") == "100"
    page.fill("#new-fork [name=name]", "slower")
    page.fill("#new-fork textarea", "optimizer.learning_rate = 1e-4\n\nalgorithm.zero_variance_filter=off")
    page.click("#new-fork button")
    page.wait_for_selector("h2#forks")
    assert page.locator("#notice").is_hidden()
    with site.sessions() as session:
        (fork,) = session.scalars(select(Run).where(Run.parent_run_id == site.control))
    assert (fork.name, fork.parent_step) == ("slower", 100)
    assert fork.changes == {"optimizer.learning_rate": 1e-4, "algorithm.zero_variance_filter": "off"}
    page.click("text=slower")
    page.wait_for_selector("#parent")
    assert page.inner_text("#parent") == "Forked from control at step 100"


def test_what_the_server_refuses_is_said_in_words(page: Any, site: Site, faults: list[str]) -> None:
    opened(page, f"/runs/{site.control}")
    page.evaluate("() => document.querySelector('button[data-action$=stop]').dataset.action = '/v1/runs/run_none:stop'")
    page.click("text=Stop")
    page.fill("dialog input", "what was typed stays")
    page.click("text=Stop the run")
    page.wait_for_selector("dialog [data-error]:not([hidden])")
    assert "no such run" in page.inner_text("dialog [data-error]")
    assert page.input_value("dialog input") == "what was typed stays"
    page.keyboard.press("Escape")
    assert page.evaluate("() => document.activeElement.textContent") == "Stop"
    assert [fault for fault in faults if "404" in fault] == faults  # the browser's own note of the refusal
    faults.clear()


def test_dark_is_a_switch_that_the_browser_remembers_and_the_chart_follows(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    ink = "() => document.querySelector('#plot').layout.font.color"
    paper = "() => getComputedStyle(document.documentElement).backgroundColor"
    light = (page.evaluate(ink), page.evaluate(paper))
    page.click("[data-theme-switch]")
    page.wait_for_function(f"() => ({ink})() !== '{light[0]}'")
    dark = (page.evaluate(ink), page.evaluate(paper))
    assert dark[1] != light[1]
    opened(page, page.url)
    assert (page.evaluate(ink), page.evaluate(paper)) == dark


def test_a_chart_makes_no_format_for_each_number_that_it_writes(page: Any, site: Site) -> None:
    page.add_init_script("""window.formats = 0;
        Intl.NumberFormat = class extends Intl.NumberFormat {
            constructor(...how) { super(...how); window.formats += 1; }
        };
        const write = Number.prototype.toLocaleString; // it makes one each time
        Number.prototype.toLocaleString = function (...how) { window.formats += 1; return write.apply(this, how); };""")
    drawn = opened(page, f"/runs/{site.control}")
    numbers = sum(len(trace["x"]) for trace in drawn.values())
    assert numbers > 100
    assert page.evaluate("window.formats") < numbers / 10
