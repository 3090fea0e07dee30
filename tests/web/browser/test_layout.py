"""What fits where: phones, narrow windows, long figures, many points."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import select, update

from server.access.service import mint
from server.alerts.models import Alert
from server.dependencies import session_cookie
from server.events.service import record
from server.forecasts.models import Forecast
from server.metrics.models import Evaluation
from server.runs.models import Attempt, Run
from server.sweeps.models import Sweep
from tests.web import seeding
from tests.web.browsing import MARKS, TRUTH, Server, Site, opened, widths

pytestmark = MARKS
PHONE = {"width": 390, "height": 844}
OVERHANG = """() => Math.max(...[...document.querySelectorAll('.table')]
    .filter(t => t.checkVisibility()).map(t => t.scrollWidth - t.clientWidth))"""


@pytest.fixture
def phone(page: Any) -> Any:
    page.set_viewport_size(PHONE)
    return page


def boxes_of(page: Any, *texts: str) -> list[dict[str, float]]:
    """Where the chart's texts that hold these words are drawn."""
    found = [page.locator("#plot .annotation", has_text=text).first.bounding_box() for text in texts]
    assert None not in found
    return found


def overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
    above = one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
    return not (beside or above)


def test_every_page_fits_a_phone_with_all_that_is_in_its_bar(phone: Any, site: Site) -> None:
    own = f"/runs/{site.control}", f"/sweeps/{site.sweep}"
    for path in ("/runs", "/sweeps", *own, "/alerts", "/track-record", "/compare", "/new", "/settings", "/docs"):
        phone.goto(path)
        assert phone.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"], path
        parts = phone.locator(".bar-top nav a, .bar-top button, .bar-top .mark").all()
        assert len(parts) == 9
        for part in parts:
            box = part.bounding_box()
            assert box, path
            assert box["x"] >= 0, path
            assert box["x"] + box["width"] <= PHONE["width"], path


@pytest.mark.parametrize("width", [375, 360])
def test_a_smaller_phone_has_every_page_in_its_bar_too(page: Any, site: Site, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/track-record")
    assert page.inner_text("#nav .count")  # a number of alerts
    ends = [link.bounding_box()["x"] + link.bounding_box()["width"] for link in page.locator("#nav a").all()]
    assert max(ends) <= width


def test_a_suspect_runs_buttons_and_the_names_in_its_events_fit_a_phone(phone: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        run = session.get_one(Run, site.control)
        run.status = "suspect"
        token, _ = mint(session, kind="api", name="a-sweep-tool-with-a-long-name", scopes=["operate"], now=site.now)
        record(session, "run.desired", actor=token.id, run_id=run.id, to_state="pause")
        record(session, "run.desired", actor="tok_00000000000000000000000000", run_id=run.id, to_state="run")
    phone.goto(f"/runs/{site.control}")
    assert phone.locator(".head .push").inner_text().split() == ["Compare", "Rename", "Pause", "Stop", "Cancel"]
    assert phone.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
    for row in phone.locator(".log tr").all():
        when, _, actor = (cell.bounding_box() for cell in row.locator("td").all())
        assert not overlap(when, actor)
        assert actor["x"] + actor["width"] <= PHONE["width"]
    assert phone.locator(".log td.actor", has_text="a-sweep-tool").count() == 1


@pytest.mark.parametrize("width", widths(360, 768, 1280))
def test_a_name_without_a_place_to_break_stays_on_its_runs_page(page: Any, site: Site, width: int) -> None:
    name = "a_name_that_has_no_place_to_break_and_goes_on_" * 4
    with site.sessions.begin() as session:
        session.get_one(Sweep, site.sweep).name = name
        run = session.get_one(Run, site.arm)
        run.name = run.task = name
        alert = session.scalars(select(Alert).where(Alert.run_id == run.id)).one()
        alert.title, alert.text = f"{name} failed", f"At 28 CPU-seconds: `{name}` ended."
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"/runs/{site.arm}")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", widths(390, 768, 900, 1280))
def test_what_answers_an_alert_is_in_sight_and_easy_to_hit(page: Any, site: Site, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/alerts")
    boxes = [button.bounding_box() for button in page.locator("main button").all()]
    assert len(boxes) == 2 * page.locator("tr[id]").count() > 0
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    first, second = boxes[:2]
    apart = max(second["x"] - first["x"] - first["width"], second["y"] - first["y"] - first["height"])
    assert apart >= 8


@pytest.fixture
def administrator(phone: Any, site: Site, server: Server) -> Iterator[Any]:
    """The phone of somebody who may do everything; the other tests' tabs share its cookies."""
    with site.sessions.begin() as session:
        _, admin = mint(session, kind="session", name="an administrator", scopes=["admin"], now=site.now)
    phone.context.add_cookies([{"name": session_cookie(site.url), "value": admin, "url": site.url}])
    yield phone
    phone.context.add_cookies([{"name": session_cookie(site.url), "value": server.cookie, "url": site.url}])


def test_tokens_and_channels_are_read_and_ended_on_a_phone_without_scrolling(administrator: Any, site: Site) -> None:
    phone = administrator
    phone.goto("/settings")
    cells = phone.locator(".cards td").filter(visible=True).all()
    assert len(cells) > 10
    for box in (cell.bounding_box() for cell in (*cells, *phone.locator(".cards button").all())):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
    assert phone.evaluate(OVERHANG) == 0
    phone.set_viewport_size({"width": 360, "height": 780})  # what is added is typed on the smallest, too
    assert phone.evaluate("() => document.documentElement.scrollWidth") <= 360
    label = "td => getComputedStyle(td, '::before').content"
    assert phone.locator(".cards td[data-label=Scopes]").first.evaluate(label) == '"Scopes"'


def test_the_reference_is_read_in_whole_lines_on_a_phone(phone: Any, site: Site) -> None:
    phone.goto("/docs")
    assert min(line.bounding_box()["width"] for line in phone.locator(".reference td.words").all()) > 300


@pytest.mark.parametrize("path", ["/runs", "/sweeps", "/runs/{control}", "/sweeps/{sweep}"])
def test_tables_are_read_on_a_phone_without_scrolling(phone: Any, site: Site, path: str) -> None:
    with site.sessions.begin() as session:
        session.get_one(Run, site.control).name = "a_name_that_has_no_place_to_break_and_goes_on_and_on_and_on"
    phone.goto(path.format(control=site.control, sweep=site.sweep))
    assert phone.evaluate(OVERHANG) == 0
    cells = phone.locator(".cards td").filter(visible=True).all()
    assert len(cells) > 6
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in (cell.bounding_box() for cell in cells))
    control = phone.locator(f"tr#{site.control}")
    if path == "/runs":
        label = "td => getComputedStyle(td, '::before').content"
        assert control.locator("td[data-label='Ceiling, 90 %']").evaluate(label) == '"Ceiling, 90 %"'


def test_the_list_is_put_in_order_on_a_phone_that_has_no_heads_to_press(phone: Any, site: Site) -> None:
    phone.goto(f"/runs?sweep={site.sweep}")
    phone.get_by_label("Order").select_option("highest ceiling first")
    phone.wait_for_url("**sort=-ceiling*")
    assert site.sweep in phone.url
    assert phone.locator("tbody tr").first.get_attribute("id") == site.control
    phone.set_viewport_size({"width": 1280, "height": 900})
    assert not phone.get_by_label("Order").is_visible()
    phone.get_by_role("link", name="Pass rate now").click()  # what a head says goes along with a filter
    phone.get_by_role("link", name="Pass rate now").click()
    phone.wait_for_url("**sort=rate*")
    phone.select_option("[name=state]", "running")
    phone.wait_for_url("**state=running*")
    assert "sort=rate" in phone.url


@pytest.mark.parametrize("width", widths(821, 900, 1024, 1160, 1280))
def test_the_list_of_runs_fits_a_laptop(page: Any, site: Site, width: int) -> None:
    with site.sessions.begin() as session:
        arm = session.get_one(Run, site.arm)
        arm.status, arm.last_compute, arm.budget_compute = "launching", 123456.0, 1.2345e6
        forecast = seeding.add_forecast(session, arm, seeding.Truth(A=0.6), at=30.0, now=site.now)
        forecast.summary = forecast.summary | {"ceiling_known": False}
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/runs")
    assert page.evaluate(OVERHANG) == 0


@pytest.mark.parametrize("width", widths(1241, 1280))
def test_the_tables_of_a_run_fit_a_laptop(page: Any, site: Site, width: int) -> None:
    with site.sessions.begin() as session:
        attempt = session.scalars(select(Attempt).where(Attempt.run_id == site.control)).one()
        attempt.observed = attempt.outcome = "succeeded"
        attempt.outcome_reason = "budget of 40 CPU-seconds reached"
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"/runs/{site.control}")
    assert page.evaluate(OVERHANG) == 0


def test_names_keep_their_head_when_a_table_is_scrolled(phone: Any, site: Site) -> None:
    phone.goto(f"/compare?run={site.control}&run={site.arm}")
    table = phone.locator(".table", has=phone.locator(".fields-by-run"))
    before = table.locator("th").first.bounding_box()
    table.evaluate("table => table.scrollBy(200, 0)")
    head, name = (table.locator(cell).first.bounding_box() for cell in ("th", "td.name"))
    assert head["x"] == before["x"] == name["x"]


def test_the_bar_stands_above_the_edges_of_the_page_on_a_wide_screen(page: Any, site: Site) -> None:
    page.set_viewport_size({"width": 1920, "height": 900})
    page.goto("/runs")
    mark, head = (page.locator(one).bounding_box() for one in (".mark", "main .head"))
    log_out = page.get_by_role("button", name="Log out").bounding_box()
    assert mark["x"] == head["x"]
    assert log_out["x"] + log_out["width"] == head["x"] + head["width"]


def test_a_link_within_a_text_is_told_by_more_than_its_colour(page: Any, site: Site) -> None:
    line = "link => getComputedStyle(link).textDecorationLine"
    for path, name in (("/alerts", "all"), ("/docs", "/openapi.json")):
        page.goto(path)
        assert page.get_by_role("link", name=name, exact=True).first.evaluate(line) == "underline", path


def test_a_swatch_stands_beside_its_arm_however_long_the_name(phone: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        session.get_one(Run, site.arm).name = "an_arm_whose_name_has_no_place_to_break_and_goes_on_and_on"
    phone.goto(f"/sweeps/{site.sweep}")
    for place in ("td.name", ".keys button"):
        cell = phone.locator(place, has_text="an_arm").first
        swatch, name = cell.locator(".swatch").bounding_box(), cell.get_by_text("an_arm").last.bounding_box()
        assert name["y"] <= swatch["y"] <= name["y"] + 20
        assert swatch["x"] + swatch["width"] <= name["x"]


PRINTED = 703  # CSS pixels of A4 between its margins
PRESSED = (
    "button:not([data-key]), select, input:not(.segments input), nav, [data-live-sign], summary:has(~ form), .on-screen"
)


PATHS = [
    "/runs",
    "/runs/{control}",
    "/sweeps/{sweep}",
    "/alerts",
    "/track-record",
    "/new",
    "/compare?run={control}&run={arm}",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_printed_page_has_its_tables_whole_on_white_and_nothing_to_press(page: Any, site: Site, path: str) -> None:
    page.add_init_script("localStorage.setItem('forecurve-theme', 'dark')")
    page.set_viewport_size({"width": PRINTED, "height": 1000})
    page.emulate_media(media="print")
    page.goto(path.format(control=site.control, arm=site.arm, sweep=site.sweep))
    wide = "() => [...document.querySelectorAll('main table')].map(t => t.getBoundingClientRect().right)"
    assert max(page.evaluate(wide), default=0) <= PRINTED
    names = [cell.bounding_box()["width"] for cell in page.locator("td.name").filter(visible=True).all()]
    assert min(names, default=PRINTED) >= 96  # a name of some words has not a line for each of them
    assert page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("() => getComputedStyle(document.body).color") == "rgb(28, 33, 38)"
    assert page.locator(PRESSED).filter(visible=True).count() == 0


def test_the_texts_of_a_chart_stand_beside_one_another_on_a_phone(phone: Any, site: Site) -> None:
    with site.sessions.begin() as session:  # a start that is low, where the text at the budget would stand
        run = session.get_one(Run, site.control)
        seeding.add_forecast(session, run, seeding.Truth(R0=0.25), at=42.0, now=site.now)
    opened(phone, f"/runs/{site.control}")
    start, budget = boxes_of(phone, "R0", "at the budget")
    assert not overlap(start, budget)


@pytest.mark.parametrize("width", widths(390, 1280))
def test_the_words_of_an_alert_stand_above_the_axis_where_the_run_fell_to_nothing(
    page: Any, site: Site, width: int
) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="fell to nothing")
        seeding.add_evaluations(session, run, TRUTH, until=44, now=site.now, fall_at=10, every=1.0)
        seeding.add_alert(session, run, since=30, at=40, now=site.now, delivered=False)
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, f"/runs/{run.id}")
    (words,) = boxes_of(page, "below forecast")
    axis = page.locator("#plot g.xtick").first.bounding_box()
    assert words["y"] + words["height"] <= axis["y"]


def test_the_words_of_an_alert_and_those_at_the_budget_do_not_cover_one_another(phone: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="collapsed")
        seeding.add_evaluations(session, run, TRUTH, until=46, now=site.now, every=1.0)
        session.flush()
        fallen = update(Evaluation).where(Evaluation.run_id == run.id, Evaluation.compute > 30)
        session.execute(fallen.values(reward=0.27))
        seeding.add_forecast(session, run, TRUTH, at=45, now=site.now, misfit="collapse")
        seeding.add_alert(session, run, since=31, at=45, now=site.now, delivered=False)
    opened(phone, f"/runs/{run.id}")
    assert not overlap(*boxes_of(phone, "below forecast", "forecast withheld"))


@pytest.mark.parametrize("width", widths(390, 1280, 1920))
def test_the_ceiling_is_written_out_however_many_digits_it_has(page: Any, site: Site, width: int) -> None:
    with site.sessions.begin() as session:
        forecast = session.get_one(Forecast, session.get_one(Run, site.control).forecast_id)
        forecast.summary = forecast.summary | {"A": {"median": 0.7804, "lower": 0.7798, "upper": 0.781}}
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, f"/runs/{site.control}")
    (label,) = boxes_of(page, "0.7798–0.7810")
    plot = page.locator("#plot").bounding_box()
    assert label["x"] + label["width"] <= plot["x"] + plot["width"]


@pytest.mark.parametrize("width", widths(860, 900, 1024, 1160, 1280))
def test_the_table_of_a_sweep_fits_a_laptop(page: Any, site: Site, width: int) -> None:
    with site.sessions.begin() as session:
        sweep, arm = session.get_one(Sweep, site.sweep), session.get_one(Run, site.arm)
        seeding.add_comparison(session, sweep, arm.name, now=site.now)
    page.set_viewport_size({"width": width, "height": 800})
    opened(page, f"/sweeps/{site.sweep}")
    assert page.evaluate(OVERHANG) == 0


def test_evaluations_at_any_compute_give_a_chart(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="mixed", budget=1e39)
        for k in range(12):
            reward = {"reward": 0.2 + 0.02 * k, "prompts": 256, "samples": 4, "variance": 2e-4, "time": site.now}
            session.add(Evaluation(run_id=run.id, attempt=1, step=k, compute=10.0 ** (50 * k - 305), **reward))
        run.last_step, run.last_compute, run.last_reward = 11, 1e245, 0.42
    drawn = opened(page, f"/runs/{run.id}")  # and no script complains
    assert len(drawn["evaluations"]["x"]) == 12
    assert 3 <= page.locator("#plot g.xtick").count() <= 15
    assert page.evaluate("() => document.documentElement.scrollWidth") == 1280


@pytest.mark.slow
def test_many_evaluations_are_drawn_small_and_below_the_fit(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="many")
        seeding.add_evaluations(session, run, TRUTH, until=42, now=site.now, every=0.05)
        seeding.add_forecast(session, run, TRUTH, at=42.0, now=site.now)
    names = list(opened(page, f"/runs/{run.id}"))
    assert names.index("evaluations") < names.index("fit")
    size = "() => document.querySelector('#plot').data.find(t => t.name === 'evaluations').marker.size"
    assert page.evaluate(size) < 4


def test_a_chart_is_as_wide_as_the_paper_and_light_on_it(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    page.click("[data-theme-switch]")
    look = "() => { const {width, font} = document.querySelector('#plot')._fullLayout; return [width, font.color] }"
    page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    on_screen = page.evaluate(look)
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function(f"() => ({look})()[0] === 680")
    assert page.evaluate(look)[1] != on_screen[1]
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    page.wait_for_function(f"() => ({look})()[0] === {on_screen[0]}")
    assert page.evaluate(look) == on_screen


def test_the_labels_of_an_axis_keep_apart_on_paper_too(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        run = seeding.add_run(session, now=site.now, name="counted in FLOPs", budget=6e21)
        seeding.add_evaluations(session, run, TRUTH, until=40, every=1.0, now=site.now)
        session.execute(update(Evaluation).where(Evaluation.run_id == run.id).values(compute=8e19 * Evaluation.compute))
        path = f"/runs/{run.id}"
    page.set_viewport_size({"width": 1440, "height": 900})
    opened(page, path)
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function("() => document.querySelector('#plot')._fullLayout.width === 680")
    boxes = [label.bounding_box() for label in page.locator("#plot .xtick text").all()]
    assert len(boxes) > 2
    for left, right in pairwise(sorted(boxes, key=lambda box: box["x"])):
        assert left["x"] + left["width"] + 2 < right["x"]
