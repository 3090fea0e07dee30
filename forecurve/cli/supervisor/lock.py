"""One service per data directory: a lock that the system releases when its holder dies."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import IO, Any

from .identity import start_ticks


class Held(Exception):
    """Another living process holds the lock; `holder` says which."""

    def __init__(self, holder: dict[str, Any]):
        super().__init__(f"held by pid {holder.get('pid')}")
        self.holder = holder


class DataDirLock:
    """An exclusive lock on a file, with the holder's particulars in it."""

    def __init__(self, path: Path):
        self.path = path
        self._file: IO[str] | None = None

    def acquire(self, holder: dict[str, Any], *, patience_s: float = 0.5) -> None:
        """Take the lock or raise Held. A holder that died (kill -9 too) holds nothing."""
        deadline = time.monotonic() + patience_s
        file = self.path.open("a+")
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    file.close()
                    raise Held(read_holder(self.path)) from None
                time.sleep(0.05)
        self._file = file
        self.describe(holder)

    def describe(self, holder: dict[str, Any]) -> None:
        """Write who holds it: the pid, and when its process began, which tells it from another with that pid."""
        assert self._file is not None
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps({"pid": os.getpid(), "start_ticks": start_ticks(os.getpid())} | holder))
        self._file.flush()

    def release(self) -> None:
        if self._file is not None:
            self._file.truncate(0)
            self._file.close()
            self._file = None


def read_holder(path: Path) -> dict[str, Any]:
    try:
        holder = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return holder if isinstance(holder, dict) else {}


def is_held(path: Path) -> bool:
    """True when a living process holds the lock."""
    if not path.exists():
        return False
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
