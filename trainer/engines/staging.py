"""A folder in shared memory where new weights lie while vLLM's workers read them: a whole model, for a moment.

Generators that Ray kills clean up nothing. So each engine holds a lock on its folder, which the kernel frees when its
last process is gone, and removes those that nobody holds before it makes its own. Unlike a process id, a lock is not
taken over by another process, and is seen from other containers.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
PREFIX = "forecurve-staging-"


class Staging:
    """A folder of our own, in memory where the machine has such a place."""

    def __init__(self, parent: Path | None = None):
        parent = parent or (SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir()))
        _remove_left_behind(parent)
        self._folder, self._held = _locked_folder(parent)

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self._folder.name)

    def close(self) -> None:
        """Remove it with all that is in it."""
        self._folder.cleanup()
        self._held.close()


def _locked_folder(parent: Path) -> tuple[tempfile.TemporaryDirectory[str], contextlib.ExitStack]:
    """A new folder, and what holds its lock. Another engine may take it for one left behind before we have the lock."""
    while True:
        folder = tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent)
        with contextlib.ExitStack() as stack, contextlib.suppress(FileNotFoundError):
            handle = stack.enter_context(_opened(Path(folder.name)))
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(handle), os.stat(folder.name)):
                return folder, stack.pop_all()
        folder.cleanup()


def _remove_left_behind(parent: Path) -> None:
    for folder in parent.glob(PREFIX + "*"):
        with contextlib.suppress(OSError), _opened(folder) as handle:  # another user's, or just removed
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its owner lives
            shutil.rmtree(folder)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield handle
    finally:
        os.close(handle)
