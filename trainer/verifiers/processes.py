"""Processes of their own sessions: whether one has ended, its end, and the CPU time that it took."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time

FIRST_LOOK, LONGEST_LOOK = 0.0005, 0.05
"""Seconds between two looks, which grow from one to the other."""


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has; what it took is kept for `end`, other than by `Popen.poll`."""
    if process.returncode is not None:
        return True
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # as in `end`
        return True


def ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for at most `seconds` of the clock; whether it has ended by then."""
    deadline, look = time.monotonic() + seconds, FIRST_LOOK
    while not has_ended(process):
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(look, left))
        look = min(2 * look, LONGEST_LOOK)
    return True


def end(process: subprocess.Popen[bytes]) -> float:
    """Kill what is left of its session, and wait; CPU seconds of it and of the children that it waited for itself."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        _, status, used = os.wait4(process.pid, 0)
    except ChildProcessError:  # where SIGCHLD is ignored, as some launchers have it, the kernel keeps no record
        process.returncode = process.returncode or 0
        return 0.0
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime
