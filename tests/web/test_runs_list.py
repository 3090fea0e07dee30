"""The list of runs: what it says of each, its filters, its pages, its order."""

from __future__ import annotations

import re
from html import unescape

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.models import Alert
from server.forecasts.models import Forecast
from server.metrics.curve import validation_curve
from server.metrics.models import Evaluation
from server.runs.models import Run
from server.sweeps.models import Sweep
from tests.conftest import Clock
from tests.server.counting import counted
from tests.web import seeding
from tests.web.conftest import Seeded
from tests.web.reading import row_of, text_of
from web.reads import sparks_of


def test_the_list_of_runs_says_of_each_where_it_stands_and_where_it_will_end(site: TestClient, seeded: Seeded) -> None:
    html = site.get("/").text
    control = row_of(html, seeded.control)
    for words in ("control", "running", "0.78", "0.75 to 0.81", "continue", "42 / 60"):
        assert words in control
    arm = row_of(html, seeded.arm)
    for words in ("no-fp32-logits", "logits_precision = bf16", "stop", "0.62"):
        assert words in arm
    assert "no evaluation yet" in row_of(html, seeded.queued)
    assert re.search(r"\b1 open alert\b", row_of(html, seeded.fallen))
    assert html.count('<svg class="spark"') == 3


def test_a_run_that_fell_and_ended_so_keeps_a_sign_of_it(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    assert "fell at" not in row_of(site.get("/runs").text, seeded.fallen)
    with sessions.begin() as session:
        run, alert = session.get_one(Run, seeded.fallen), session.get_one(Alert, seeded.alert)
        run.status, run.finished_at, alert.resolved_at = "succeeded", clock.now, clock.now
        alert.since_compute = 25.64
    row = row_of(site.get("/runs").text, seeded.fallen)
    assert "succeeded fell at 26 CPU-seconds" in row
    assert "open alert" not in row
    page = text_of(site.get(f"/runs/{seeded.fallen}").text)
    assert "It fell below its forecast at 26 CPU-seconds." in page
    assert "fell at 26 CPU-seconds" in page


def test_every_pass_rate_says_how_sure_it_is(site: TestClient, sessions: sessionmaker[Session], seeded: Seeded) -> None:
    """Without counts by the number of samples; of a step that two attempts took, by the newer one."""
    paths = ("/runs", f"/sweeps/{seeded.sweep}", f"/compare?run={seeded.control}&run={seeded.arm}")
    for path in paths:
        assert re.search(r"0\.\d\d ± 0\.01\d", row_of(site.get(path).text, seeded.control))
        assert re.search(r"Pass rate now 0\.\d\d ± 0\.01\d", text_of(site.get(f"/runs/{seeded.control}").text))
    with sessions.begin() as session:
        run = session.get_one(Run, seeded.control)
        newest = session.get_one(Evaluation, (run.id, 1, run.last_step))
        newest.variance, newest.reward, newest.prompts, newest.samples = None, 0.5, 25, 4
        later = {"attempt": 2, "step": run.last_step, "compute": run.last_compute, "time": newest.time}
        run.last_reward = 0.5
    for path in paths:
        assert "0.50 ± 0.050" in row_of(site.get(path).text, seeded.control)
    assert "0.500 0.050 25 × 4" in text_of(site.get(f"/runs/{seeded.control}").text)
    with sessions.begin() as session:
        session.add(Evaluation(run_id=seeded.control, reward=0.5, variance=0.03**2, **later))
    for path in paths:
        assert "0.50 ± 0.030" in row_of(site.get(path).text, seeded.control)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("state=queued", {"no-cispo"}),
        ("state=alerting", {"broken-learning-rate"}),
        ("state=active", {"control", "no-fp32-logits", "no-cispo", "broken-learning-rate"}),
        ("state=succeeded", set()),
        ("text=NO-", {"no-fp32-logits", "no-cispo"}),
        ("text=%25", set()),
        ("state=queued&text=fp32", set()),
        ("sweep={sweep}", {"control", "no-fp32-logits", "no-cispo"}),
        ("sweep=&state=&text=", {"control", "no-fp32-logits", "no-cispo", "broken-learning-rate"}),
    ],
)
def test_the_filters_in_the_url_choose_the_runs(site: TestClient, seeded: Seeded, query: str, names: set[str]) -> None:
    html = site.get("/runs?" + query.format(sweep=seeded.sweep)).text
    assert set(re.findall(r'<a href="/runs/run_\w+">([^<]+)</a>', html)) == names
    assert ("No run passes these filters" in html) == (not names)


@pytest.mark.parametrize(
    ("query", "status", "said"), [("state=garbage", 422, "queued, launching"), ("sweep=swp_no", 404, "no such sweep")]
)
def test_a_filter_that_names_nothing_says_so(site: TestClient, query: str, status: int, said: str) -> None:
    answer = site.get(f"/runs?{query}")
    assert (answer.status_code, said in answer.text) == (status, True)


def test_an_archived_run_is_on_its_own_page_and_under_its_filter_only(
    site: TestClient, seeded: Seeded, sessions: sessionmaker[Session], clock: Clock
) -> None:
    with sessions.begin() as session:
        run = session.get_one(Run, session.get_one(Alert, seeded.alert).run_id)
        run.status, run.name = "stopped", "put-away"
    assert f'data-action="/v1/runs/{run.id}:archive"' in site.get(f"/runs/{run.id}").text
    with sessions.begin() as session:
        session.get_one(Run, run.id).archived_at = clock.now
    page = site.get(f"/runs/{run.id}").text
    assert f'data-action="/v1/runs/{run.id}:restore"' in page
    assert seeded.alert in page
    assert 'class="count"' not in page
    assert run.name not in site.get("/runs").text
    assert run.name in site.get("/runs?state=archived").text
    for path in ("/alerts", "/alerts?show=all"):
        assert seeded.alert not in site.get(path).text


def test_long_lists_are_turned_page_by_page_and_no_run_is_missed(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock
) -> None:
    with sessions.begin() as session:
        session.add_all(
            Run(name=f"r{k}", compute_unit="steps", status="stopped" if k % 2 else "queued", changes={})
            for k in range(120)
        )
    seen: list[str] = []
    path: str | None = "/runs?state=queued"
    while path:
        html = site.get(path).text
        seen += re.findall(r'<tr id="(run_\w+)"', html)
        older = re.search(r'<a rel="next" href="([^"]+)"', html)
        path = unescape(older[1]) if older else None
    assert len(seen) == len(set(seen)) == 60
    assert seen == sorted(seen, reverse=True)


def test_going_back_shows_the_filters_that_the_list_has(site: TestClient, seeded: Seeded) -> None:
    form = re.search(r'<form class="filters".*?</form>', site.get("/runs").text, flags=re.S)[0]  # type: ignore[index]
    assert len(re.findall(r'<(?:form|select|input)[^>]* autocomplete="off"', form)) == 5


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("name", ["broken-learning-rate", "control", "no-cispo", "no-fp32-logits"]),
        ("-name", ["no-fp32-logits", "no-cispo", "control", "broken-learning-rate"]),
        ("-rate", ["control", "no-fp32-logits", "broken-learning-rate", "no-cispo"]),
        ("rate", ["broken-learning-rate", "no-fp32-logits", "control", "no-cispo"]),
        ("-ceiling", ["control", "no-fp32-logits", "broken-learning-rate", "no-cispo"]),
        ("nothing", ["broken-learning-rate", "no-cispo", "no-fp32-logits", "control"]),
    ],
)
def test_runs_are_counted_and_sorted_by_a_press_on_a_head(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded, sort: str, names: list[str]
) -> None:
    with sessions.begin() as session:  # a ceiling that is not identified is none
        forecast = session.get_one(Forecast, session.get_one(Run, seeded.fallen).forecast_id)
        forecast.summary = forecast.summary | {"ceiling_known": False}
    html = site.get(f"/runs?sort={sort}").text
    assert sorted(re.findall(r'<a href="/runs/run_\w+">([^<]+)<', html)) == sorted(names)
    if sort != "nothing":
        assert re.findall(r'<a href="/runs/run_\w+">([^<]+)<', html) == names
    assert "Runs 4 Log" not in text_of(html)
    assert "Runs 4" in text_of(html)
    pressed = {"name": "-name", "-name": "name"}.get(sort, "name")
    assert f'<a href="/runs?sort={pressed}">Run, difference from control</a>' in html


@pytest.mark.parametrize(
    ("sort", "said"),
    [
        ("name", "by name"),
        ("-name", "by name, reversed"),
        ("rate", "highest pass rate first, reversed"),
        ("nothing", None),
        ("", None),
    ],
)
def test_a_narrow_window_says_how_the_list_is_sorted(
    site: TestClient, seeded: Seeded, sort: str, said: str | None
) -> None:
    for path in ("/runs", f"/sweeps/{seeded.sweep}"):
        order = re.search(r'<select name="sort".*?</select>', site.get(f"{path}?sort={sort}").text)
        assert order
        assert re.findall(r" selected>([^<]+)<", order[0]) == ([said] if said else [])


def test_a_sorted_list_is_turned_page_by_page(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    with sessions.begin() as session:
        for k in range(60):
            seeding.add_run(session, now=clock.now, name=f"run-{k:02}", status="queued")
    first = site.get("/runs?state=queued&sort=-name&text=run-").text
    assert "60 of these, 50 on this page" in text_of(first)
    following = unescape(re.search(r'<a rel="next" href="([^"]+)"', first)[1])  # type: ignore[index]
    names = re.findall(r">(run-\d\d)<", first) + re.findall(r">(run-\d\d)<", site.get(following).text)
    assert names == [f"run-{k:02}" for k in reversed(range(60))]
    assert site.get("/runs?sort=name&cursor=run_x").status_code == 200


def test_what_forecasts_say_of_ceilings_is_read_once_however_often_the_list_is_sorted_by_it(
    site: TestClient, sessions: sessionmaker[Session], engine: Engine, clock: Clock
) -> None:
    with sessions.begin() as session:
        for k in range(60):
            run = seeding.add_run(session, now=clock.now, name=f"run-{k:02}")
            seeding.add_evaluations(session, run, seeding.Truth(A=0.5 + 0.004 * k), until=42, now=clock.now)
            seeding.add_forecast(session, run, seeding.Truth(A=0.5 + 0.004 * k), at=42.0, now=clock.now)
    best = [f"run-{k:02}" for k in reversed(range(60))]
    first = site.get("/runs?sort=-ceiling").text
    following = unescape(re.search(r'<a rel="next" href="([^"]+)"', first)[1])  # type: ignore[index]
    assert re.findall(r">(run-\d\d)<", first) + re.findall(r">(run-\d\d)<", site.get(following).text) == best
    with sessions.begin() as session:  # the lowest is the highest from now on
        run = session.scalars(select(Run).where(Run.name == "run-00")).one()
        seeding.add_forecast(session, run, seeding.Truth(A=0.79), at=43.0, now=clock.now)
    with counted(engine) as statements:
        assert re.findall(r">(run-\d\d)<", site.get("/runs?sort=-ceiling").text) == ["run-00", *best[:49]]
    assert [statement for statement in statements if "JOIN forecasts" in statement] == []
    read = [statement.count("%(id_1_") for statement in statements if "FROM forecasts" in statement]
    assert sorted(read) == [1, 50, 50]  # what is new, what the rows say, and their bands


@pytest.mark.parametrize("count", [1, 2, 39, 40, 41, 79, 80, 1000])
def test_of_a_long_curve_the_list_reads_what_it_draws(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, count: int
) -> None:
    with sessions.begin() as session:
        run = seeding.add_run(session, now=clock.now, budget=None)
        seeding.add_evaluations(session, run, seeding.Truth(), until=count - 1, every=1.0, now=clock.now)
        session.flush()
        points = sparks_of(session, [run])[run.id].points
        whole = [(point.compute, point.reward) for point in validation_curve(session, run.id)]
    assert set(points) <= set(whole)
    assert min(count, 20) <= len(points) <= 40
    assert (points[0], points[-1]) == (whole[0], whole[-1])
    said = "1 evaluation" if count == 1 else f"{count} evaluations"
    assert f"pass rate {whole[0][1]:.2f} to {whole[-1][1]:.2f} over {said}" in unescape(site.get("/runs").text)


def test_runs_are_found_by_their_tags_and_say_them(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    assert 'name="tag"' not in site.get("/runs").text  # nothing to choose from
    with sessions.begin() as session:
        session.get_one(Run, seeded.control).tags = ["a & b", "paper"]
        session.get_one(Run, seeded.arm).tags = ["paper"]
        session.get_one(Sweep, seeded.sweep).tags = ["of the sweep"]
    html = site.get("/runs").text
    assert re.findall(r'<option value="(a &amp; b|paper)"', html) == ["paper", "a &amp; b"]  # what most have first
    assert '<a class="tag" href="/runs?tag=a+%26+b">a &amp; b</a>' in html
    assert '<option value="of the sweep"' in html
    by_sweep = re.findall(r'<tr id="(\w+)"', site.get("/runs?tag=of+the+sweep").text)
    assert sorted(by_sweep) == sorted([seeded.control, seeded.arm, seeded.queued])
    found = site.get("/runs?tag=a+%26+b").text
    assert re.findall(r'<tr id="(\w+)"', found) == [seeded.control]
    assert '<option value="a &amp; b" selected>' in found
    with sessions.begin() as session:
        session.get_one(Run, seeded.control).archived_at = clock.now
    assert 'value="a &amp; b"' not in site.get("/runs").text
    archived = site.get("/runs?state=archived").text
    assert re.findall(r'<option value="(a &amp; b|paper)"', archived) == ["a &amp; b", "paper"]
    link = '<a class="tag" href="/runs?state=archived&amp;tag=paper">'
    for html in (archived, site.get(f"/runs/{seeded.control}").text):
        assert link in html
    nothing = site.get("/runs?tag=gone").text
    assert "No run passes these filters." in nothing
    assert '<option value="gone" selected>' in nothing
