"""The pages on real Postgres, and somebody who is logged in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from server import dependencies
from server.access.service import mint
from server.settings import Settings
from tests.conftest import Clock
from web.app import create_app

Login = Callable[..., TestClient]


@pytest.fixture
def app(sessions: sessionmaker[Session], engine: Engine, clock: Clock, tmp_path: Path) -> FastAPI:
    """API and pages, with `clock` as their time."""
    configuration = Settings(DATABASE_URL=engine.url.render_as_string(hide_password=False), data_dir=tmp_path)
    app = create_app(configuration, sessions)
    app.dependency_overrides[dependencies.clock] = clock
    return app


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
