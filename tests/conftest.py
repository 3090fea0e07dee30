"""Fixtures on real Postgres: one embedded server for all workers, a migrated template, a clone per worker."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from filelock import FileLock
from hypothesis import settings
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session, sessionmaker

from forecurve.cli.supervisor.postgres import embedded_server

if TYPE_CHECKING:
    from server.settings import Settings

# Tests run as many at once as there are cores: a second thread of OpenBLAS or torch spins for a core it never gets.
for library in ("OPENBLAS", "OMP"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# The same examples in every run: what is found does not depend on luck. `make test-all` draws new ones, and more.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("anew", deadline=None, print_blob=True)  # of `make test-all`
settings.load_profile("repeatable")

TEMPLATE = "forecurve_template"
HOME = "FORECURVE_TESTS_HOME"


def pytest_configure(config: pytest.Config) -> None:
    """One folder for what all workers share. Not under pytest's own: each session that starts closes that to others,
    and Postgres, which never runs as root, would be locked out of its own data."""
    if HOME in os.environ:  # a worker: it has the folder from its controller
        return
    os.environ[HOME] = tempfile.mkdtemp(prefix="forecurve-")

    def remove() -> None:
        shutil.rmtree(os.environ.pop(HOME), ignore_errors=True)

    config.add_cleanup(remove)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start Ray go to one worker: they take turns anyhow, and no other worker stands in their queue. So do
    those of vLLM, whose import costs more than most of them."""
    for item in items:
        group = next((name for name in ("ray", "vllm") if item.get_closest_marker(name) is not None), None)
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadgroup` gives away groups whole and other tests one by one; here other files stay whole too."""
    from xdist.scheduler import LoadGroupScheduling

    class GroupsAndFiles(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group = super()._split_scope(nodeid)
            return nodeid.partition("::")[0] if group == nodeid else group

    return GroupsAndFiles(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """What thousands of tests and their imports made stays to the end: no collection of garbage looks it through again
    (half a second each time, and transformers' Trainer asks for one after every training). And what tests make is
    looked through less often than Python would."""
    if session.config.getoption("loadgroup", False):
        _check_groups(session.items)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _check_groups(items: list[pytest.Item]) -> None:
    """xdist knows groups by the end of their tests' names. With a pytest that does not let it write there it keeps none
    together, and nobody would know but by the minutes that tests of Ray then wait for each other."""
    for item in items:
        group = item.get_closest_marker("xdist_group")
        if group is not None and not item.nodeid.endswith(f"@{group.args[0]}"):
            raise pytest.UsageError(f"pytest {pytest.__version__} and pytest-xdist do not keep groups together")


@pytest.fixture(autouse=True)
def one_ray_at_a_time(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests marked `ray` take turns: two heads that start at once on two cores overrun Ray's own 30 s."""
    if request.node.get_closest_marker("ray") is None:
        yield
        return
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with FileLock(shared / "ray.lock"):
        yield


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of the embedded server's maintenance database; the template is migrated by whoever comes first."""
    shared = Path(os.environ[HOME])
    with FileLock(shared / "postgres.lock"):
        server = embedded_server(shared / "pg")
        server.start()
        url = server.get_uri()
        _prepare_template(url, shared)
    yield url
    server.cleanup()


def _prepare_template(url: str, shared: Path) -> None:
    marker = shared / "template.ready"
    if marker.exists():
        return
    from server.migrate import upgrade

    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
    upgrade(database_url(url, TEMPLATE))
    marker.touch()


def database_url(url: str, name: str) -> str:
    """The same server, another database."""
    return url.replace("/postgres?", f"/{name}?")


@pytest.fixture(scope="session")
def engine(postgres_url: str) -> Iterator[Engine]:
    """An engine on this worker's own clone of the template."""
    from server.database import make_engine

    name = f"forecurve_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    engine = make_engine(database_url(postgres_url, name))
    yield engine
    engine.dispose()


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    """A session whose work is rolled back after the test, commits included (they become savepoints)."""
    with engine.connect() as connection, connection.begin() as outer:
        with Session(connection, join_transaction_mode="create_savepoint", expire_on_commit=False) as session:
            yield session
        outer.rollback()


@pytest.fixture
def sessions(engine: Engine) -> Iterator[sessionmaker[Session]]:
    """Sessions that really commit, for leases, outbox and threads; every table is emptied afterwards."""
    from server.database import make_sessions
    from server.models import Base

    yield make_sessions(engine)
    with engine.begin() as connection:
        for table in reversed(Base.metadata.sorted_tables):
            connection.execute(text(f"DELETE FROM {table.name}"))


class Clock:
    """The time that the API believes it is; tests move it instead of sleeping."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def application(engine: Engine) -> FastAPI:
    """The API, composed once a worker. Tests use it through `api`, which gives each its own settings and clock."""
    from server.app import create_api
    from server.database import make_sessions

    return create_api(_settings(engine), make_sessions(engine))


@pytest.fixture
def api(
    application: FastAPI, sessions: sessionmaker[Session], engine: Engine, clock: Clock, tmp_path: Path
) -> Iterator[TestClient]:
    """The API on real Postgres, with `clock` as its time. Settings are `api.app.state.settings`."""
    from server import dependencies

    application.state.settings = _settings(engine, data_dir=tmp_path)
    application.dependency_overrides = {dependencies.clock: clock}
    with TestClient(application) as client:
        yield client


def _settings(engine: Engine, **values: object) -> Settings:
    from server.settings import Settings

    return Settings(DATABASE_URL=engine.url.render_as_string(hide_password=False), **values)


@pytest.fixture
def headers(sessions: sessionmaker[Session], clock: Clock) -> dict[str, dict[str, str]]:
    """Request headers by scope: `headers["read"]`, `["operate"]`, `["admin"]`, each with a token of its own."""
    from server.access.service import mint

    with sessions.begin() as session:
        minted = {
            scope: mint(session, kind="api", name=f"test {scope}", scopes=[scope], now=clock.now)[1]
            for scope in ("read", "operate", "admin")
        }
    return {scope: {"Authorization": f"Bearer {secret}"} for scope, secret in minted.items()}
