"""One writer for a spool: a lock on its folder that ends with the process that holds it, however that process ends."""

from __future__ import annotations

import contextlib
import os
import socket
from io import FileIO
from pathlib import Path
from weakref import WeakSet

from .errors import ClientError

try:
    import fcntl
except ImportError:  # a system without such locks: there nobody is kept out
    fcntl = None  # type: ignore[assignment]


class InUse(ClientError):
    """Another living process, or another run of this one, writes the folder; `holder` says which."""

    def __init__(self, directory: Path, holder: str):
        way_out = "let it finish its run, or end it, and then try again"
        super().__init__(f"{directory} is still being written by {holder}; {way_out}")
        self.holder = holder


class WriterLock:
    """Held from its making until `release`.

    Raises:
        InUse: somebody else holds it.
        OSError: the folder cannot be written.
    """

    def __init__(self, directory: Path):
        self._file: FileIO | None = _hold(directory)
        _held.add(self)

    def release(self) -> None:
        """Let others write. A file that a forked process still has open holds nothing from here on."""
        if self._file is None:
            return
        if fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)
        self.leave()

    def leave(self) -> None:
        """Close the file and nothing more: for a forked process, whose parent goes on writing."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _hold(directory: Path) -> FileIO:
    file = (directory / "writer.lock").open("a+b", buffering=0)
    try:
        _lock(file)
    except BlockingIOError:
        holder = _holder(file)
        file.close()
        raise InUse(directory, holder) from None
    with contextlib.suppress(OSError):  # a full disk: who holds the lock is only said, not needed
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
    return file


def _lock(file: FileIO) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return  # a file system without locks: better to report unlocked than not to report


def _holder(file: FileIO) -> str:
    file.seek(0)
    return file.read(200).decode("utf-8", "replace") or "another process"


_held: WeakSet[WriterLock] = WeakSet()


def _leave_all() -> None:
    for lock in list(_held):
        lock.leave()


if hasattr(os, "register_at_fork"):  # else a worker that outlives its parent would keep the parent's lock
    os.register_at_fork(after_in_child=_leave_all)
