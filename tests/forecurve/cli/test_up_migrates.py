"""`forecurve up` while a migration takes long: here another one holds the database's lock for migrations."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.conftest import TEMPLATE, database_url

from .services import UpProcess, processes_of, wait_until

pytestmark = [pytest.mark.usefixtures("own_short_paths"), pytest.mark.timeout(200)]

NAME = "forecurve_up_migrates"
LOCK = 0x466F7265  # ADVISORY_LOCK of migrations/env.py
IMPATIENT = """
import sys
from forecurve.cli import main
from forecurve.cli.supervisor import up
up.STILL_S = 0.5
sys.exit(main())
"""


@pytest.fixture
def held(postgres_url: str) -> Iterator[psycopg.Connection]:
    """A session in a database of its own, which nobody migrates while it lasts."""
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {NAME} TEMPLATE {TEMPLATE}")
        with psycopg.connect(database_url(postgres_url, NAME), autocommit=True) as holder:
            holder.execute("SELECT pg_advisory_lock(%s)", [LOCK])
            yield holder
        server.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@pytest.fixture
def up(held: psycopg.Connection, postgres_url: str, tmp_path: Path) -> Iterator[UpProcess]:
    environment = {"DATABASE_URL": database_url(postgres_url, NAME)}
    service = UpProcess(tmp_path / "d", "--without-ray", entry=("-c", IMPATIENT), environment=environment)
    yield service
    service.process.kill()
    service.process.wait()


def test_a_migration_that_takes_long_is_waited_for_and_said_to_run(up: UpProcess, held: psycopg.Connection) -> None:
    first = up.wait_for("still-runs", part="migrations")
    assert first["log"].endswith("migrate.log")
    wait_until(lambda: [event["event"] for event in up.events].count("still-runs") >= 2)

    held.close()
    assert up.wait_for("ready", part="migrations")["seconds"] >= 1.0
    assert up.stop(signal.SIGINT) == 0
    assert processes_of(up.data_dir) == []


@pytest.mark.slow
def test_a_stop_during_a_migration_is_heard(up: UpProcess) -> None:
    up.wait_for("still-runs", part="migrations")
    assert up.stop(signal.SIGTERM, seconds=30) == 0
    assert not any(event["event"] == "ready" and event["part"] == "migrations" for event in up.events)
    assert processes_of(up.data_dir) == []
