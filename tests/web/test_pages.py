"""What holds for every page, read as a browser without scripts would."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine, event
from sqlalchemy.orm import Session, sessionmaker

from server.events.service import record
from tests.conftest import Clock
from tests.web import seeding
from tests.web.conftest import Login, Seeded
from tests.web.reading import HOSTILE, assert_clean, text_of

PAGES = ("/", "/runs", "/sweeps", "/new", "/alerts", "/alerts?show=all", "/track-record", "/settings", "/docs")


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


@pytest.mark.parametrize("path", [*PAGES, "/runs/{control}", "/sweeps/{sweep}"])
def test_headings_go_down_by_one_level_at_most(site: TestClient, seeded: Seeded, path: str) -> None:
    html = site.get(path.format(control=seeded.control, sweep=seeded.sweep)).text
    levels = [int(level) for level in re.findall(r"<h(\d)\b", html)]
    assert levels[0] == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


def test_every_file_that_a_page_names_is_served(site: TestClient, seeded: Seeded) -> None:
    html = site.get(f"/runs/{seeded.control}").text
    files = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', html))
    names = {name.split("/", 3)[-1] for name in files}
    assert {
        "css/forecurve.css",
        "vendor/htmx.min.js",
        "vendor/plotly-basic.min.js",
        "js/theme.js",
        "js/main.js",
    } <= names
    assert "js/chart/curve.js" in names
    assert {name: site.get(name).status_code for name in files} == dict.fromkeys(files, 200)


@pytest.mark.parametrize(
    ("path", "command"),
    [
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


def test_a_command_to_copy_has_the_public_address_whatever_the_request_calls_itself(
    site: TestClient, app: FastAPI
) -> None:
    app.state.settings.public_url = "https://forecurve.example.com/"
    html = site.get("/runs", headers={"X-Forwarded-Host": "evil.example"}).text
    assert "FORECURVE_URL=<span data-origin>https://forecurve.example.com</span> FORECURVE_TOKEN=…" in html
    assert "testserver" not in html
    assert "evil.example" not in html


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


def test_every_button_of_a_list_says_what_it_is_about(site: TestClient, seeded: Seeded) -> None:
    names = re.findall(r'<button data-action[^>]* aria-label="([^"]+)"', site.get("/alerts").text)
    about = "broken-learning-rate fell below its forecast"
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


def test_who_may_only_read_sees_everything_and_can_change_nothing(log_in: Login, seeded: Seeded) -> None:
    reader = log_in("read")
    for path in (*PAGES, f"/runs/{seeded.control}", f"/runs/{seeded.fallen}", f"/sweeps/{seeded.sweep}"):
        answer = reader.get(path)
        assert answer.status_code == 200
        assert "data-action" not in answer.text, path
    assert "need scope admin" in text_of(reader.get("/settings").text)


def test_head_of_a_page_has_the_headers_of_the_page(site: TestClient, seeded: Seeded) -> None:
    for path in ("/", "/runs", f"/runs/{seeded.control}", "/login", "/runs/run_none", "/settings"):
        got, head = site.get(path), site.head(path)
        assert (head.status_code, head.content) == (got.status_code, b""), path
        for name in ("content-type", "content-encoding", "location"):
            assert head.headers.get(name) == got.headers.get(name), path
