"""A server with a sweep of two arms, and a tab in a browser that is logged in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import Engine

from server.access.service import mint
from server.database import make_sessions
from server.dependencies import session_cookie
from server.models import Base
from tests.forecurve.serving import served
from tests.web import seeding
from tests.web.browsing import ARGUMENTS, CHROMIUM, TRUTH, Server, Site
from tests.web.conftest import begin_anew


@pytest.fixture(scope="module")
def server(composed: FastAPI, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the module, so that the browser's cache is warm as it is for people."""
    begin_anew(composed, engine, tmp_path_factory.mktemp("data"))
    sessions = make_sessions(engine)
    with sessions.begin() as session:
        _, cookie = mint(session, kind="session", name="a person", scopes=["operate"], now=datetime.now(UTC))
    with served(composed) as url:
        yield Server(url, sessions, cookie)
    with engine.begin() as connection:
        for table in reversed(Base.metadata.sorted_tables):
            connection.execute(table.delete())


@pytest.fixture
def site(server: Server) -> Site:
    now = datetime.now(UTC)
    with server.sessions.begin() as session:
        sweep = seeding.add_sweep(session, now=now)
        control = seeding.add_run(session, now=now, sweep=sweep)
        seeding.add_evaluations(session, control, TRUTH, until=42, now=now)
        for at in (12.0, 22.0, 42.0):
            forecast = seeding.add_forecast(session, control, TRUTH, at=at, now=now)
            control.frozen_forecast_id = forecast.id if at == 22.0 else control.frozen_forecast_id
        seeding.add_checkpoint(session, control, step=100, compute=20.0, now=now)
        changes = {"algorithm.loss": "dapo"}
        arm = seeding.add_run(session, now=now, name="no-<b>cispo</b>", sweep=sweep, changes=changes)
        seeding.add_evaluations(session, arm, seeding.Truth(A=0.6), until=30, now=now, fall_at=24)
        seeding.add_forecast(session, arm, seeding.Truth(A=0.6), at=30.0, now=now)
        seeding.add_alert(session, arm, since=26, at=28, now=now)
        _, ingest = mint(session, kind="ingest", name="c", scopes=["ingest"], now=now, run_id=control.id, attempt=1)
        return Site(server.url, server.sessions, now, sweep.id, control.id, arm.id, ingest)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """One for all modules. No longer than for this folder: while it is there no other event loop may run here."""
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def browser(server: Server, chromium: Any) -> Iterator[Any]:
    """A window that is logged in."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, base_url=server.url, color_scheme="light")
    context.add_cookies([{"name": session_cookie(server.url), "value": server.cookie, "url": server.url}])
    context.new_page().goto("/static/icon.svg")  # keeps its process, in which Plotly is compiled, between tabs
    yield context
    context.close()


@pytest.fixture
def faults() -> list[str]:
    """What scripts complained of, and what the browser refused for the policy's sake. Must be empty in the end."""
    return []


@pytest.fixture
def page(browser: Any, site: Site, faults: list[str]) -> Iterator[Any]:
    """A fresh tab."""
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    yield page
    page.evaluate("() => localStorage.clear()")
    page.close()
    assert faults == []
