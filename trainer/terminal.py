"""Those who read what a run says may leave before it ends: a terminal is closed, a pipe's reader has enough
(`... | head -1`), a disk is full. Or they read no further for a while, as Ctrl-S has a terminal do. That is no fault of
the run's, which goes on."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import TextIO

from forecurve import patient_output

_GONE = (errno.EPIPE, errno.EIO)
_LEAVE_S = 5.0  # what is held at the end is in the run's directory too


def say(text: str, stream: TextIO, end: str = "\n") -> None:
    """Print for whoever still reads."""
    try:
        print(text, end=end, file=stream, flush=True)
    except OSError as error:
        _told(error, stream)


def outlive_it() -> None:
    """From here on neither the end of the terminal ends this process, or those that it starts, nor do they wait for
    whoever reads stderr; on stdout are answers, which are to be read whole."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    plain = sys.stderr
    sys.stderr = patient_output.patient(plain, lambda error: _told(error, plain))


def leave() -> None:
    """Flush before the interpreter does, which would make an error of it, or wait for a terminal that is stopped: what
    Ray has done at exit writes there too."""
    patient_output.leave(sys.stderr, _LEAVE_S)
    if patient_output.is_behind(sys.stderr):
        if os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno()):
            _close(sys.stdout)
        _close(sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _close(stream)


def _told(error: OSError, stream: TextIO) -> None:
    if error.errno in _GONE:
        _close(stream)


def _close(stream: TextIO) -> None:
    """What is left in it goes nowhere, and so does all that comes, whoever writes it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
