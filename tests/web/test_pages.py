"""What the pages say, read as a browser without scripts would."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from html import unescape

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine, event, select
from sqlalchemy.orm import Session, sessionmaker

from server.access.service import create_token, open_session
from server.alerts.models import Alert
from server.events.service import record
from server.forecasts.models import Forecast
from server.runs.models import Run
from server.sweeps.models import Sweep, SweepComparison
from tests.conftest import Clock
from tests.web import seeding
from tests.web.conftest import Login, Seeded
from tests.web.reading import HOSTILE, assert_clean, row_of, text_of

PAGES = ("/", "/runs", "/sweeps", "/alerts", "/alerts?show=all", "/track-record", "/settings", "/docs")


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    """The statements that the database sees meanwhile."""
    seen: list[str] = []

    def note(connection: object, cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    yield seen
    event.remove(engine, "before_cursor_execute", note)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_keeps_to_its_own_scripts(site: TestClient, seeded: Seeded, path: str) -> None:
    answer = site.get(path)
    assert answer.status_code == 200
    policy = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    assert policy["script-src"] == "'self'"
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert answer.headers["cache-control"] == "no-store"
    assert_clean(answer.text)


def test_the_run_and_the_sweep_page_keep_to_their_own_scripts(site: TestClient, seeded: Seeded) -> None:
    for path in (f"/runs/{seeded.fallen}", f"/sweeps/{seeded.sweep}"):
        assert_clean(site.get(path).text)


def test_every_file_that_a_page_names_is_served(site: TestClient, seeded: Seeded) -> None:
    html = site.get(f"/runs/{seeded.control}").text
    files = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', html))
    names = {name.split("/", 3)[-1] for name in files}
    assert {"css/forecurve.css", "vendor/htmx.min.js", "vendor/plotly.min.js", "js/theme.js", "js/main.js"} <= names
    assert "js/chart/curve.js" in names
    assert {name: site.get(name).status_code for name in files} == dict.fromkeys(files, 200)


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/", "export FORECURVE_URL=http://testserver FORECURVE_TOKEN=…"),
        ("/", "forecurve sweep submit sweep.yaml"),
        ("/", "forecurve demo --data-dir .demo --port 0"),  # not on this service, which may refuse it
        ("/sweeps", "forecurve sweep submit sweep.yaml"),
        ("/alerts", "forecurve demo --data-dir .demo --port 0"),
    ],
)
def test_an_empty_page_says_the_next_command_to_type(site: TestClient, path: str, command: str) -> None:
    html = site.get(path).text
    assert "<table>" not in html
    assert command in text_of(html)


def test_the_list_of_runs_says_of_each_where_it_stands_and_where_it_will_end(site: TestClient, seeded: Seeded) -> None:
    html = site.get("/").text
    control = row_of(html, seeded.control)
    for words in ("control", "running", "0.78", "0.75 to 0.81", "continue", "42.0 / 60.0"):
        assert words in control
    arm = row_of(html, seeded.arm)
    for words in ("no-fp32-logits", "logits_precision = bf16", "stop", "0.62"):
        assert words in arm
    assert "no evaluation yet" in row_of(html, seeded.queued)
    assert "1 open alerts" in row_of(html, seeded.fallen)
    assert html.count('<svg class="spark"') == 3


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


def test_the_number_of_queries_does_not_grow_with_the_number_of_runs(
    site: TestClient, engine: Engine, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    def queries(path: str) -> int:
        with counted(engine) as seen:
            assert site.get(path).status_code == 200
        return len(seen)

    paths = ("/runs", f"/sweeps/{seeded.sweep}", "/alerts", "/sweeps")
    queries("/runs")  # notes the session's use once
    before = {path: queries(path) for path in paths}
    with sessions.begin() as session:
        sweep = session.get_one(seeding.Sweep, seeded.sweep)
        for k in range(12):
            run = seeding.add_run(session, now=clock.now, name=f"arm-{k}", sweep=sweep, changes={"seed": k + 1})
            seeding.add_evaluations(session, run, seeding.Truth(), until=10, now=clock.now)
            seeding.add_forecast(session, run, seeding.Truth(), at=10.0, now=clock.now)
            seeding.add_alert(session, run, since=8, at=10, now=clock.now)
    assert {path: queries(path) for path in paths} == before


@pytest.mark.parametrize("path", ["/runs", "/runs/{control}", "/sweeps/{sweep}"])
def test_what_happens_while_a_page_is_read_comes_in_its_stream(
    site: TestClient, engine: Engine, sessions: sessionmaker[Session], seeded: Seeded, path: str
) -> None:
    waiting = ["meanwhile"]

    def happen(connection: object, cursor: object, statement: str, *_: object) -> None:
        if "FROM runs" in statement and waiting:
            with sessions.begin() as session:
                record(session, "run.status", actor="test", run_id=seeded.control, reason=waiting.pop())

    site.get("/alerts")  # notes the session's use: then the page's own transaction writes nothing
    event.listen(engine, "after_cursor_execute", happen)
    html = site.get(path.format(control=seeded.control, sweep=seeded.sweep)).text
    event.remove(engine, "after_cursor_execute", happen)
    cursor = re.search(r'data-cursor="(\d+)"', html)[1]  # type: ignore[index]
    follows = site.get(f"/v1/events?since={cursor}").json()["items"]
    assert [happened["reason"] for happened in follows] == ["meanwhile"]


def test_the_sweep_page_sets_every_arm_against_the_control(site: TestClient, seeded: Seeded) -> None:
    html = site.get(f"/sweeps/{seeded.sweep}").text
    assert "Against control: ceiling down: no-fp32-logits (-0.16)." in text_of(html)
    assert "Best at 60 CPU-seconds: control (98 % sure). Dominated: no-fp32-logits." in text_of(html)
    arm = row_of(html, seeded.arm)
    assert "ceiling down ceiling -0.16 (-0.20 to -0.12) 0.92x (0.80 to 1.05) as fast to 0.49" in arm
    assert "not compared yet" in row_of(html, seeded.queued)
    series = json.loads(unescape(re.search(r'data-series="([^"]+)"', html)[1]))  # type: ignore[index]
    assert series == {seeded.control: None, seeded.arm: 0, seeded.queued: 1}
    assert html.count('<svg class="bar"') == 3
    assert '<g class="neutral">' in html
    assert "0.73 0.71 to 0.76 best: 98 %" in row_of(html, seeded.control)  # the forecast at the budget
    assert " dominated " in arm
    assert f'data-action="/v1/sweeps/{seeded.sweep}:stop"' in html


def test_the_heads_of_a_sweeps_table_say_what_their_figures_rest_on(site: TestClient, seeded: Seeded) -> None:
    heads = text_of(re.search(r"<thead>.*?</thead>", site.get(f"/sweeps/{seeded.sweep}").text, flags=re.S)[0])  # type: ignore[index]
    assert "Ceiling, 90 % interval with past runs, if any" in heads
    assert "Against the control, 90 % by own evaluations alone" in heads


def test_arms_beyond_the_colours_have_another_swatch(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    with sessions.begin() as session:
        sweep = session.get_one(Sweep, seeded.sweep)
        for k in range(6):
            seeding.add_run(session, now=clock.now, name=f"arm-{k}", sweep=sweep, changes={"seed": k + 1})
    html = site.get(f"/sweeps/{seeded.sweep}").text
    assert html.count('<span class="swatch series-0"></span>') == 2  # as a key and in the table
    assert html.count('<span class="swatch series-0 again-1"></span>') == 2
    assert html.count("again") == 4


def test_the_list_of_sweeps_counts_their_runs(site: TestClient, seeded: Seeded) -> None:
    assert "loo-scalerl leave one out 3 3 0" in row_of(site.get("/sweeps").text, seeded.sweep)


def test_the_inbox_says_what_happened_and_whom_it_told(site: TestClient, seeded: Seeded) -> None:
    row = row_of(site.get("/alerts").text, seeded.alert)
    assert "broken-learning-rate fell below its own forecast" in row
    assert "#rl-alerts: delivered" in row
    assert "1 not acknowledged" in text_of(site.get("/runs").text)


def test_every_button_of_a_list_says_what_it_is_about(site: TestClient, seeded: Seeded) -> None:
    names = re.findall(r'<button data-action[^>]* aria-label="([^"]+)"', site.get("/alerts").text)
    about = "broken-learning-rate is below its forecast"
    assert names == [f"Acknowledge: {about}", f"Resolve: {about}"]
    same_site = {"Sec-Fetch-Site": "same-origin"}
    made = site.post("/v1/tokens", json={"name": "ci", "scopes": ["read"]}, headers=same_site).json()
    html = site.get("/settings").text
    assert f'aria-label="Revoke the token ci, {made["prefix"]}…"' in html
    assert 'aria-label="Remove the channel #rl-alerts"' in html


def test_a_table_that_scrolls_is_reached_by_keyboard(site: TestClient, seeded: Seeded) -> None:
    for path in ("/runs", "/sweeps", f"/sweeps/{seeded.sweep}", "/alerts", "/settings"):
        tables = re.findall(r'<div class="table"([^>]*)>', site.get(path).text)
        assert tables
        assert all(re.fullmatch(r' tabindex="0" role="region" aria-label="[^"]+"', said) for said in tables), path


def test_going_back_shows_the_filters_that_the_list_has(site: TestClient, seeded: Seeded) -> None:
    form = re.search(r'<form class="filters".*?</form>', site.get("/runs").text, flags=re.S)[0]  # type: ignore[index]
    assert len(re.findall(r'<(?:form|select|input)[^>]* autocomplete="off"', form)) == 4


def test_an_alert_that_was_acknowledged_stays_in_the_inbox_but_is_not_counted(site: TestClient, seeded: Seeded) -> None:
    same_site = {"Sec-Fetch-Site": "same-origin"}
    assert site.post(f"/v1/alerts/{seeded.alert}:acknowledge", headers=same_site).status_code == 200
    html = site.get("/alerts").text
    assert "acknowledged" in row_of(html, seeded.alert)
    assert f"{seeded.alert}:acknowledge" not in html
    assert "not acknowledged" not in text_of(html)


def test_an_alert_that_was_resolved_leaves_the_inbox_and_stays_on_its_runs_page(
    site: TestClient, seeded: Seeded
) -> None:
    same_site = {"Sec-Fetch-Site": "same-origin"}
    assert f'data-action="/v1/alerts/{seeded.alert}:resolve"' in site.get("/alerts").text
    alert = site.post(f"/v1/alerts/{seeded.alert}:resolve", headers=same_site).json()
    assert seeded.alert not in site.get("/alerts").text
    assert "resolved" in row_of(site.get("/alerts?show=all").text, seeded.alert)
    page = site.get(f"/runs/{alert['run_id']}").text
    assert seeded.alert in page
    assert f"{seeded.alert}:resolve" not in page


def test_names_that_hold_markup_are_shown_as_text_everywhere(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock
) -> None:
    with sessions.begin() as session:
        sweep = seeding.add_sweep(session, HOSTILE, now=clock.now)
        run = seeding.add_run(session, now=clock.now, name=HOSTILE, sweep=sweep, status="failed")
        run.arm = run.reason = HOSTILE
        seeding.add_evaluations(session, run, seeding.Truth(), until=20, now=clock.now)
        forecast = seeding.add_forecast(session, run, seeding.Truth(), at=20.0, now=clock.now)
        forecast.sentence = HOSTILE
        alert = seeding.add_alert(session, run, since=8, at=10, now=clock.now)
        alert.title = alert.text = HOSTILE
        paths = [
            "/runs",
            "/sweeps",
            "/alerts",
            "/settings",
            f"/runs/{run.id}",
            f"/sweeps/{sweep.id}",
            f"/runs?text={HOSTILE}",
        ]
    for path in paths:
        html = site.get(path).text
        assert_clean(html)
    assert "<script>alert(1)</script>" in text_of(site.get("/runs").text)  # as text it is all there


@pytest.mark.parametrize("path", ["/runs/run_none", "/sweeps/swp_none", "/nothing", "/static/x/none.js"])
def test_what_is_not_there_gives_a_page_that_leads_on(site: TestClient, path: str) -> None:
    answer = site.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert 'href="/runs"' in answer.text
    assert answer.headers["x-request-id"] in answer.text
    assert "/v1" not in answer.text
    assert "openapi" not in answer.text
    assert_clean(answer.text)


@pytest.mark.parametrize("path", ["/v1/runs/run_none", "/v1/nothing", "/v1"])
def test_the_api_keeps_its_own_form_of_errors(site: TestClient, path: str) -> None:
    answer = site.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == 404


def test_the_api_asks_for_a_token_where_a_page_leads_to_the_login(visitor: TestClient) -> None:
    assert visitor.get("/v1/runs").status_code == 401
    assert visitor.get("/runs").status_code == 303


def test_a_failure_of_ours_gives_a_page_without_the_secrets_of_the_trace(
    app: FastAPI, site: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr("web.reads.unseen_alerts", fail)
    answer = site.get("/runs")
    assert answer.status_code == 500
    assert "the log has the request id" in answer.text
    assert "hunter2" not in answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]


def test_who_may_only_read_sees_everything_and_can_change_nothing(log_in: Login, seeded: Seeded) -> None:
    reader = log_in("read")
    for path in (*PAGES, f"/runs/{seeded.control}", f"/runs/{seeded.fallen}", f"/sweeps/{seeded.sweep}"):
        answer = reader.get(path)
        assert answer.status_code == 200
        assert "data-action" not in answer.text, path
    assert "need scope admin" in text_of(reader.get("/settings").text)


def test_settings_list_tokens_and_channels_without_their_secrets(site: TestClient, seeded: Seeded) -> None:
    same_site = {"Sec-Fetch-Site": "same-origin"}
    made = site.post("/v1/tokens", json={"name": "ci", "scopes": ["read"]}, headers=same_site).json()
    html = site.get("/settings").text
    assert made["secret"] not in html
    assert f"{made['prefix']}…" in html
    assert f'data-action="/v1/tokens/{made["id"]}" data-method="DELETE"' in html
    assert "https://hooks.example.com/…" in html
    assert "services/x" not in html


def test_settings_say_when_a_token_expires_in_the_viewers_zone(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock
) -> None:
    with sessions.begin() as session:
        create_token(session, name="ci", scopes=["read"], lifetime=timedelta(days=3), actor="test", now=clock.now)
    html = site.get("/settings").text
    ends = (clock.now + timedelta(days=3)).isoformat()
    moment = rf'<time[^>]* datetime="{re.escape(ends)}"[^>]* data-style="clock"'
    assert re.search(f'in 3 d</span><span class="sub">{moment}', html)


def test_settings_list_the_sessions_that_are_open_and_end_them(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock
) -> None:
    with sessions.begin() as session:
        _, token = create_token(session, name="ci", scopes=["read"], lifetime=None, actor="test", now=clock.now)
        open_session(session, token, clock.now)
    html = site.get("/settings").text
    assert "browser session (this one)" in text_of(html)
    opened = re.search(r'data-action="/v1/tokens/(tok_\w+)"[^>]*data-confirm="End the browser session ci', html)
    assert opened
    ended = site.delete(f"/v1/tokens/{opened[1]}", headers={"Sec-Fetch-Site": "same-origin"})
    assert ended.status_code == 200
    assert "the browser session ci" not in site.get("/settings").text


def test_the_reference_page_has_every_operation_of_the_api(app: FastAPI, site: TestClient) -> None:
    html = site.get("/docs").text
    expected = sum(len(methods) for methods in app.openapi()["paths"].values())
    assert html.count("<summary>") == expected > 30
    for path in app.openapi()["paths"]:
        assert f"<code>{path}</code>" in html


def test_pages_are_no_part_of_the_described_api(app: FastAPI) -> None:
    described = [path for path in app.openapi()["paths"] if not path.startswith("/v1")]
    assert sorted(described) == ["/healthz", "/readyz"]


def test_a_sweep_that_is_over_asks_for_nothing_more(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded
) -> None:
    with sessions.begin() as session:
        comparison = session.get_one(SweepComparison, seeded.sweep)
        assert comparison.result
        arm = comparison.result["arms"][0] | {"verdict": "undecided", "direction": None}
        arm["would_decide"] = "run to 29 CPU-seconds"
        said = "Against control: undecided: no-fp32-logits (run to 29 CPU-seconds)."
        comparison.result = comparison.result | {"arms": [arm], "sentence": said}
    assert "run to 29" in text_of(site.get(f"/sweeps/{seeded.sweep}").text)
    with sessions.begin() as session:
        for run in session.scalars(select(Run).where(Run.sweep_id == seeded.sweep)):
            run.status = "succeeded"
    html = site.get(f"/sweeps/{seeded.sweep}").text
    assert "All 3 runs are over. Best at 60 CPU-seconds: control (98 % sure). " in text_of(html)
    assert " Against control: undecided: no-fp32-logits. Forks with a larger budget" in text_of(html)
    assert "run to" not in text_of(html)
    assert "data-advice" not in html
    assert f'data-action="/v1/sweeps/{seeded.sweep}:stop"' not in html


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
