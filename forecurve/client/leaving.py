"""The end of a process whose runs were not finished: what they logged last is waited for, of all together not long."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable
from weakref import WeakMethod

LEAVE_S = 5.0
"""How long the end of a process waits for the disk and the service."""

LastWords = Callable[[float], None]

_to_call: list[WeakMethod[LastWords]] = []


def at_exit(say: LastWords) -> None:
    """Call a method, with the seconds left to it, when the process ends: by an exception, or the end of its script."""
    _to_call[:] = [known for known in _to_call if known() is not None]
    _to_call.append(WeakMethod(say))


def _leave() -> None:
    deadline = time.monotonic() + LEAVE_S
    for known in _to_call:
        say = known()
        if say is not None:
            say(max(0.0, deadline - time.monotonic()))


atexit.register(_leave)  # at import, so that it comes after what a script registers, which may finish its run
