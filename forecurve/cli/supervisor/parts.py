"""A part of the service, as the supervisor sees it; and the common kind, a child process with a log."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil

from . import leftovers
from .files import open_log

LOG_BYTES = 16 << 20


class Part(Protocol):
    """Something to start, watch and stop."""

    name: str
    note: str
    log: Path

    @property
    def pid(self) -> int | None: ...

    def start(self) -> None: ...

    def is_ready(self) -> bool: ...

    def is_alive(self) -> bool: ...

    def keep_log_short(self) -> None: ...

    def stop(self, grace_s: float) -> None: ...


class ProcessPart:
    """A child in its own session, so that a Ctrl-C in the terminal reaches only the supervisor.

    Args:
        ready: asked until it is true; by default a living process is ready.
        deep: after it ended, end what it left behind too (Ray starts a dozen processes).
        inherits: descriptors that the child has too, under the same numbers.
    """

    def __init__(
        self,
        name: str,
        argv: list[str],
        *,
        env: dict[str, str],
        cwd: Path,
        log: Path,
        ready: Callable[[ProcessPart], bool] | None = None,
        note: str = "",
        deep: bool = False,
        inherits: tuple[int, ...] = (),
    ):
        self.name = name
        self.note = note
        self.log = log
        self._argv, self._env, self._cwd = argv, env, cwd
        self._ready = ready
        self._deep = deep
        self._inherits = inherits
        self._process: subprocess.Popen[bytes] | None = None
        self._family: list[psutil.Process] = []
        self._log_from = 0
        self._looked = 0.0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        if self._deep:
            leftovers.kill(self._family)
        _rotate(self.log)
        with open_log(self.log) as log:
            self._log_from = log.tell()
            with suppress(OSError):  # a full disk
                log.write(f"--- {time.strftime('%Y-%m-%d %H:%M:%S')} start\n".encode())
            self._process = subprocess.Popen(
                self._argv,
                env=self._env,
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=self._inherits,
            )

    def is_ready(self) -> bool:
        return self.is_alive() and (self._ready is None or self._ready(self))

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self, grace_s: float) -> None:
        """SIGTERM to the process, SIGKILL to its group after the grace; then whatever of its family still lives."""
        if self._process is None:
            return
        self.note_family()
        if self.is_alive():
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
        self._kill_group()
        leftovers.kill(self._family)

    def has_said(self, text: str) -> bool:
        """True once the log of this start holds the text."""
        with self.log.open("rb") as file:
            file.seek(self._log_from)
            return text.encode() in file.read()

    def keep_log_short(self) -> None:
        keep_short(self.log, _older(self.log))

    def note_family(self, *, at_most_every_s: float = 0.0) -> None:
        """Remember the descendants: once the process is gone, nothing leads to them any more."""
        now = time.monotonic()
        if not self._deep or now - self._looked < at_most_every_s:
            return
        self._looked = now
        if self._process is not None and self.is_alive():
            known = {process.pid: process for process in self._family if leftovers.is_alive(process)}
            with suppress(psutil.Error):
                known |= {child.pid: child for child in psutil.Process(self._process.pid).children(recursive=True)}
            self._family = list(known.values())

    def _kill_group(self) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(3.0)


def keep_short(log: Path, older: Path) -> None:
    """A log that has grown too long begins anew; what it held is the older one. Who writes it writes on: it appends.
    What it writes between the two steps is lost."""
    try:
        if log.stat().st_size > LOG_BYTES:
            shutil.copy(log, older)
            os.truncate(log, 0)
    except OSError:  # a full disk has no room for the older one; it is tried again
        older.unlink(missing_ok=True)


def _rotate(log: Path) -> None:
    """Keep one older log."""
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(_older(log))


def _older(log: Path) -> Path:
    return log.with_suffix(".log.1")
