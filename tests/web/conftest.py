"""The pages on real Postgres, and somebody who is logged in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from server import dependencies
from server.access.service import mint
from server.access.tries import Tries
from server.database import make_sessions
from server.events.stream import EventFeed
from server.settings import Settings
from tests.conftest import Clock
from tests.web import seeding
from web.app import create_app

Login = Callable[..., TestClient]


@pytest.fixture(scope="session")
def composed(engine: Engine) -> FastAPI:
    """API and pages, composed once a worker: what routes and templates cost at first. Tests use it through `app`."""
    return create_app(_settings(engine), make_sessions(engine))


@pytest.fixture
def app(
    composed: FastAPI, sessions: sessionmaker[Session], engine: Engine, clock: Clock, tmp_path: Path
) -> Iterator[FastAPI]:
    """API and pages, with `clock` as their time."""
    begin_anew(composed, engine, tmp_path)
    composed.dependency_overrides = {dependencies.clock: clock}
    yield composed
    composed.dependency_overrides = {}


def begin_anew(app: FastAPI, engine: Engine, data_dir: Path) -> None:
    """As a process that has just started: settings, tries and listeners of its own."""
    app.state.settings = _settings(engine, data_dir=data_dir)
    app.state.tries = Tries(app.state.settings.wrong_tokens_a_minute)
    app.state.feed = EventFeed(app.state.sessions, dependencies.clock)


def _settings(engine: Engine, **values: object) -> Settings:
    return Settings(DATABASE_URL=engine.url.render_as_string(hide_password=False), **values)


@pytest.fixture
def visitor(app: FastAPI) -> Iterator[TestClient]:
    """A browser that is not logged in; redirects are looked at, not followed."""
    with TestClient(app, follow_redirects=False, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def log_in(visitor: TestClient, sessions: sessionmaker[Session], clock: Clock) -> Login:
    """Log the visitor in with the given scope."""

    def with_scope(scope: str = "admin") -> TestClient:
        with sessions.begin() as session:
            _, secret = mint(session, kind="session", name=f"a person who may {scope}", scopes=[scope], now=clock.now)
        visitor.cookies.set(dependencies.SESSION_COOKIE, secret)
        return visitor

    return with_scope


@pytest.fixture
def site(log_in: Login) -> TestClient:
    """A browser of an administrator."""
    return log_in("admin")


@dataclass(frozen=True)
class Seeded:
    """Ids of what the pages are read with."""

    sweep: str
    control: str
    arm: str
    queued: str
    fallen: str
    alert: str


@pytest.fixture
def seeded(sessions: sessionmaker[Session], clock: Clock) -> Seeded:
    """A sweep with a control, a lower arm and one that waits; and a run of its own that fell below its forecast."""
    now = clock.now
    with sessions.begin() as session:
        sweep = seeding.add_sweep(session, now=now)
        control = seeding.add_run(session, now=now, sweep=sweep)
        seeding.add_evaluations(session, control, seeding.Truth(), until=42, now=now)
        for at in (22.0, 42.0):
            forecast = seeding.add_forecast(session, control, seeding.Truth(), at=at, now=now)
        seeding.add_recommendation(session, control, forecast)
        seeding.add_checkpoint(session, control, step=100, compute=20.0, now=now)
        changes = {"algorithm.logits_precision": "bf16"}
        arm = seeding.add_run(session, now=now, name="no-fp32-logits", sweep=sweep, changes=changes)
        seeding.add_evaluations(session, arm, seeding.Truth(A=0.62), until=42, now=now)
        seeding.add_forecast(session, arm, seeding.Truth(A=0.62), at=42.0, now=now, action="stop")
        seeding.add_comparison(session, sweep, arm.name, now=now)
        queued = seeding.add_run(
            session, now=now, name="no-cispo", sweep=sweep, changes={"algorithm.loss": "dapo"}, status="queued"
        )
        fallen = seeding.add_run(session, now=now, name="broken-learning-rate", changes={"optimizer.warmup_steps": 0})
        seeding.add_evaluations(session, fallen, seeding.Truth(), until=44, now=now, fall_at=30)
        frozen = seeding.add_forecast(session, fallen, seeding.Truth(), at=22.0, now=now)
        fallen.frozen_forecast_id = frozen.id
        alert = seeding.add_alert(session, fallen, since=32, at=36, now=now)
        return Seeded(sweep.id, control.id, arm.id, queued.id, fallen.id, alert.id)
