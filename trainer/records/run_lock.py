"""A run's directory is written by one process at a time. The kernel frees the lock of a process that dies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from trainer.errors import ConfigurationError

LOCK = ".lock"


@contextlib.contextmanager
def writing(directory: Path, wait_s: float = 0.0) -> Iterator[None]:
    """Make `directory` if there is none, and have it for ourselves. What was refused before its first file leaves none.

    Raises:
        ConfigurationError: it cannot be written, or another process still has it after `wait_s` seconds.
    """
    made = _made(directory)
    lock = FileLock(directory / LOCK, timeout=wait_s, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise ConfigurationError(
            f"--out is {str(directory)!r}, where another process is training; wait for its end, stop it, or choose "
            "another directory"
        ) from None
    except OSError as error:
        raise _unusable(directory, error) from None
    try:
        yield
    finally:
        if made and [path.name for path in directory.iterdir()] == [LOCK]:
            with contextlib.suppress(OSError):
                (directory / LOCK).unlink()
                directory.rmdir()
        lock.release()


def _made(directory: Path) -> bool:
    """Whether it was not there before."""
    try:
        there = directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(directory, error) from None
    return not there


def _unusable(directory: Path, error: OSError) -> ConfigurationError:
    why = error.strerror or str(error)
    return ConfigurationError(f"--out is {str(directory)!r}, which cannot be written ({why}); choose another directory")
