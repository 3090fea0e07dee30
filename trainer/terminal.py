"""Those who read what a run says may leave before it ends: a terminal is closed, a pipe's reader has enough
(`... | head -1`), a disk is full. That is no fault of the run's, which goes on."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import TextIO

_GONE = (errno.EPIPE, errno.EIO)


def say(text: str, stream: TextIO, end: str = "\n") -> None:
    """Print for whoever still reads."""
    try:
        print(text, end=end, file=stream, flush=True)
    except OSError as error:
        if error.errno in _GONE:
            _close(stream)


def outlive_it() -> None:
    """From here on the end of the terminal ends neither this process nor those that it starts."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def leave() -> None:
    """Flush before the interpreter does, which would make an error of it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _close(stream)


def _close(stream: TextIO) -> None:
    """What is left in it goes nowhere, and so does all that comes, whoever writes it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
