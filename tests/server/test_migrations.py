"""Migrations on a database of their own: up, check, down, up again, and two migrators at once."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from alembic import command
from psycopg.types.json import Jsonb

from server import migrate
from server.database import make_engine, make_sessions
from server.events.service import read_after
from server.migrate import alembic_config, upgrade
from server.settings import get_settings
from tests.conftest import database_url


@pytest.fixture
def empty_database(postgres_url: str) -> Iterator[str]:
    name = f"migrations_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield database_url(postgres_url, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def to_migrate(empty_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The database that `python -m server.migrate` is told."""
    monkeypatch.setenv("DATABASE_URL", empty_database)
    get_settings.cache_clear()
    yield empty_database
    get_settings.cache_clear()


def _tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {row[0] for row in rows}


def test_the_migrations_make_exactly_the_tables_of_the_models(empty_database: str) -> None:
    upgrade(empty_database)
    command.check(alembic_config(empty_database))  # raises when the models say anything else
    from server.models import Base

    assert _tables(empty_database) == set(Base.metadata.tables) | {"alembic_version"}


def test_down_removes_everything_and_up_works_again(empty_database: str) -> None:
    upgrade(empty_database)
    command.downgrade(alembic_config(empty_database), "base")
    assert _tables(empty_database) == {"alembic_version"}
    upgrade(empty_database)
    command.check(alembic_config(empty_database))


def test_down_from_the_tests_of_channels_leaves_the_deliveries_of_alerts(empty_database: str) -> None:
    upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("""
            INSERT INTO runs (id, name, executor, compute_unit, desired_state, status, version, attempt, is_control,
                              changes)
              VALUES ('run_1', 'r', 'ray', 'GPU-hours', 'run', 'running', 1, 1, false, '{}');
            INSERT INTO alerts (id, run_id, kind, level, title, text, evidence)
              VALUES ('alr_1', 'run_1', 'run_failed', 'ALERT', 't', 't', '{}');
            INSERT INTO channels (id, name, kind, url, secret, min_level, enabled)
              VALUES ('chn_1', 'c', 'webhook', 'https://x', 's', 'ALERT', true);
            INSERT INTO deliveries (id, alert_id, channel_id, level, event, status, tries)
              VALUES ('dlv_1', 'alr_1', 'chn_1', 'ALERT', 'alert', 'pending', 0),
                     ('dlv_2', NULL, 'chn_1', 'ALERT', 'channel.test', 'pending', 0);
        """)
    command.downgrade(alembic_config(empty_database), "0011")
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("SELECT id FROM deliveries").fetchall() == [("dlv_1",)]
    upgrade(empty_database)
    command.check(alembic_config(empty_database))


def test_up_forgets_what_was_kept_as_known_of_the_noise_and_was_its_bound(empty_database: str) -> None:
    command.upgrade(alembic_config(empty_database), "0016")
    with psycopg.connect(empty_database) as connection:
        connection.execute("""
            INSERT INTO runs (id, name, executor, compute_unit, desired_state, status, version, attempt, is_control,
                              changes)
              VALUES ('run_1', 'r', 'external', 'GPU-hours', 'run', 'running', 1, 1, false, '{}');
            INSERT INTO evaluations (run_id, attempt, step, compute, reward, prompts, samples, counts, variance,
                                     details, time)
              VALUES ('run_1', 1, 0, 0, 0.5, 4, 4, '{4,4,0,0}', 0.01, '{}', now()),
                     ('run_1', 1, 1, 1, 0.5, 100, 4, NULL, 0.000625, '{}', now()),
                     ('run_1', 1, 2, 2, 0.5, 4, 1, '{1,1,0,0}', 0.0625, '{}', now());
        """)
    upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        kept = connection.execute("SELECT step, variance FROM evaluations ORDER BY step").fetchall()
    assert kept == [(0, 0.01), (1, None), (2, None)]


def test_up_tells_the_ends_of_forecasts_that_are_there_and_down_forgets_them(empty_database: str) -> None:
    command.upgrade(alembic_config(empty_database), "0018")
    curve = {"median": 0.7, "lower": 0.67, "upper": 0.72}
    ending = {"median": 0.7, "lower": 0.65, "upper": 0.725}
    summary = {"at_budget": {"compute": 100, "curve": curve, "evaluation": ending, "ending": ending}}
    band = {
        "compute": [10, 40, 100],
        "median": [0.3, 0.5, 0.7],
        "lower90": [0.3, 0.47, 0.67],
        "upper90": [0.3, 0.52, 0.72],
    }
    state = {"version": 1, "nominal": 0.01}
    with psycopg.connect(empty_database) as connection:
        connection.execute("""
            INSERT INTO runs (id, name, executor, compute_unit, desired_state, status, version, attempt, is_control,
                              changes)
              VALUES ('run_1', 'r', 'external', 'GPU-hours', 'run', 'running', 1, 1, false, '{}')
        """)
        for id_, each in (("fct_1", summary), ("fct_2", {"at_budget": None})):
            connection.execute(
                """
                INSERT INTO forecasts (id, run_id, created_at, at_compute, at_step, points, unit, summary, band, state,
                                       sentence, seconds)
                  VALUES (%s, 'run_1', now(), 40, 4, 9, 'GPU-hours', %s, %s, %s, 's', 0.1)
                """,
                [id_, *map(Jsonb, (each, band, state))],
            )
    upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        told, plain = [
            row[0] for row in connection.execute("SELECT summary -> 'ends_ahead' FROM forecasts ORDER BY id").fetchall()
        ]
        frozen = connection.execute("SELECT DISTINCT state FROM forecasts").fetchall()
    assert told["compute"] == [40, 100]
    assert told["median"] == [0.5, 0.7]
    assert told["lower"] == pytest.approx([0.45, 0.65])
    assert told["upper"][1] == pytest.approx(0.7 + math.sqrt(0.02**2 + 0.025**2 - 0.02**2))
    assert plain["lower"] == pytest.approx([0.47, 0.67])
    assert frozen == [({"version": 2, "nominal": 0.01, "source": None, "restarts": []},)]
    command.downgrade(alembic_config(empty_database), "0018")
    with psycopg.connect(empty_database) as connection:
        kept = connection.execute("SELECT summary, state FROM forecasts ORDER BY id").fetchall()
    assert kept == [(summary, state), ({"at_budget": None}, state)]


def test_two_migrators_at_once_do_not_trip_over_each_other(empty_database: str, tmp_path: Path) -> None:
    environment = os.environ | {"DATABASE_URL": empty_database}

    def migrate(_: int) -> subprocess.CompletedProcess[str]:
        root = Path(__file__).parents[2]
        code = f"import sys; sys.path.insert(0, {str(root)!r}); from server.migrate import main; sys.exit(main())"
        command_line = [sys.executable, "-c", code]
        return subprocess.run(command_line, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(2) as pool:  # from another folder, too: no alembic.ini and no working directory is needed
        done = list(pool.map(migrate, range(2)))
    assert [process.returncode for process in done] == [0, 0], [process.stderr for process in done]
    assert "runs" in _tables(empty_database)


def test_events_of_a_dump_from_a_cluster_that_had_counted_further_are_seen(
    to_migrate: str,
) -> None:
    assert migrate.main() == 0
    with psycopg.connect(to_migrate) as connection:
        connection.execute("""
            INSERT INTO events (kind, actor, evidence, transaction)
              VALUES ('restored', 'a', '{}', (pg_current_xact_id()::text::bigint + 1000000)::text::xid8),
                     ('own', 'a', '{}', pg_current_xact_id());
        """)
    assert migrate.main() == 0
    engine = make_engine(to_migrate)
    with make_sessions(engine)() as session:
        page = read_after(session, 0)
        later = read_after(session, page.cursor)
    engine.dispose()
    assert [event.kind for event in page.items] == ["restored", "own"]
    assert page.items[1].transaction > page.items[0].transaction == 1
    assert later.items == []


def test_a_database_of_a_newer_version_is_left_alone_in_words(
    to_migrate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(to_migrate) as connection:
        connection.execute("""
            CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY);
            INSERT INTO alembic_version VALUES ('9999');
        """)
    assert migrate.main() == 1
    said = capsys.readouterr().err
    assert "'9999': the database is of another version of Forecurve, and this one knows" in said
    assert f"up to {migrate.newest()}; start that one" in said
    assert _tables(to_migrate) == {"alembic_version"}


def test_a_setting_that_cannot_be_meant_is_told_before_the_database_is_touched(
    to_migrate: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORECURVE_TICK_S", "2s")
    assert migrate.main() == 2
    assert capsys.readouterr().err == "FORECURVE_TICK_S is '2s': must be a number\n"
    assert _tables(to_migrate) == set()


def test_a_database_that_is_not_there_is_told_in_one_line_without_its_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], to_migrate: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:hunter2@127.0.0.1:1/there")
    assert migrate.main() == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("DATABASE_URL: the database cannot be reached (connection to server at")
    assert said.endswith("; see that it runs there, and that user, password and name are right")
    assert "hunter2" not in said


def test_locks_that_others_hold_are_told_with_the_setting_that_waits_longer(
    to_migrate: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command.upgrade(alembic_config(to_migrate), "0026")
    monkeypatch.setenv("FORECURVE_MIGRATION_LOCK_TIMEOUT", "100ms")
    with psycopg.connect(to_migrate) as holder:
        holder.execute("SELECT 1 FROM runs")
        assert migrate.main() == 1
    said = capsys.readouterr().err
    assert "canceling statement due to lock timeout; end the other processes on this database, or wait" in said
    monkeypatch.setenv("FORECURVE_MIGRATION_LOCK_TIMEOUT", "soon")
    assert migrate.main() == 1
    assert "FORECURVE_MIGRATION_LOCK_TIMEOUT must be a time as PostgreSQL writes it" in capsys.readouterr().err
    monkeypatch.undo()
    upgrade(to_migrate)


def test_migrate_without_a_database_says_what_to_set(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "DATABASE_URL"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-m", "server.migrate"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "DATABASE_URL" in done.stderr


def test_down_from_the_ends_of_alerts_leaves_their_beginnings_and_up_knows_what_is_a_test(empty_database: str) -> None:
    upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("""
            INSERT INTO runs (id, name, executor, compute_unit, desired_state, status, version, attempt, is_control,
                              changes)
              VALUES ('run_1', 'r', 'ray', 'GPU-hours', 'run', 'running', 1, 1, false, '{}');
            INSERT INTO alerts (id, run_id, kind, level, title, text, evidence)
              VALUES ('alr_1', 'run_1', 'below_forecast', 'ALERT', 't', 't', '{}');
            INSERT INTO channels (id, name, kind, url, secret, min_level, enabled)
              VALUES ('chn_1', 'c', 'webhook', 'https://x', 's', 'ALERT', true);
            INSERT INTO deliveries (id, alert_id, channel_id, level, event, status, tries)
              VALUES ('dlv_1', 'alr_1', 'chn_1', 'ALERT', 'alert', 'delivered', 1),
                     ('dlv_2', 'alr_1', 'chn_1', 'ALERT', 'alert.back', 'pending', 0),
                     ('dlv_3', NULL, 'chn_1', 'ALERT', 'channel.test', 'delivered', 1);
        """)
    command.downgrade(alembic_config(empty_database), "0021")
    upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        left = connection.execute("SELECT id, event FROM deliveries ORDER BY id").fetchall()
    assert left == [("dlv_1", "alert"), ("dlv_3", "channel.test")]


def test_channels_of_mail_are_out_of_use_after_going_back(empty_database: str) -> None:
    upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("""
            INSERT INTO channels (id, name, kind, url, secret, min_level, enabled)
              VALUES ('chn_1', 'ops', 'email', 'mailto:ops@lab.example', '', 'ALERT', true),
                     ('chn_2', 'team', 'slack', 'https://x', 's', 'ALERT', true);
        """)
    command.downgrade(alembic_config(empty_database), "0023")
    upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        left = connection.execute("SELECT id, kind, url, enabled FROM channels ORDER BY id").fetchall()
    assert left == [("chn_1", "webhook", "", False), ("chn_2", "slack", "https://x", True)]


def test_going_back_from_news_forgets_them_and_keeps_the_deliveries_of_alerts(empty_database: str) -> None:
    upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("""
            INSERT INTO runs (id, name, executor, compute_unit, desired_state, status, version, attempt, is_control,
                              changes)
              VALUES ('run_1', 'r', 'ray', 'GPU-hours', 'run', 'failed', 1, 1, false, '{}');
            INSERT INTO alerts (id, run_id, kind, level, title, text, evidence)
              VALUES ('alr_1', 'run_1', 'run_failed', 'ALERT', 't', 't', '{}');
            INSERT INTO channels (id, name, kind, url, secret, min_level, enabled, hears)
              VALUES ('chn_1', 'c', 'webhook', 'https://x', 's', 'ALERT', true, '{alerts,ends}'),
                     ('chn_2', 'd', 'webhook', 'https://y', 's', 'ALERT', true, '{ends}');
            INSERT INTO deliveries (id, alert_id, run_id, channel_id, level, event, status, tries)
              VALUES ('dlv_1', 'alr_1', NULL, 'chn_1', 'ALERT', 'alert', 'delivered', 1),
                     ('dlv_2', NULL, 'run_1', 'chn_1', NULL, 'run.over', 'pending', 0);
        """)
    command.downgrade(alembic_config(empty_database), "0027")
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("SELECT id FROM deliveries").fetchall() == [("dlv_1",)]
        left = connection.execute("SELECT id, enabled, url FROM channels ORDER BY id").fetchall()
    assert left == [("chn_1", True, "https://x"), ("chn_2", False, "")]  # that one would be sent all alerts
    upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("SELECT DISTINCT hears FROM channels").fetchall() == [(["alerts"],)]
