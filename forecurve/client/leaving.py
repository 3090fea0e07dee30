"""The end of a process whose runs were not finished: what they logged last is waited for, of all together not long."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable

LEAVE_S = 5.0
"""How long the end of a process waits for the disk and the service."""

LastWords = Callable[[float], None]
IsOver = Callable[[], bool]

_to_call: list[
    tuple[LastWords, IsOver]
] = []  # kept from being forgotten: a run may be left in the hands of nobody else


def at_exit(say: LastWords, is_over: IsOver) -> None:
    """Call `say`, with the seconds left to it, when the process ends: by an exception, or the end of its script.

    Args:
        is_over: nothing is left to say, so that it need not be kept in mind any longer.
    """
    _to_call[:] = [known for known in _to_call if not known[1]()]
    _to_call.append((say, is_over))


def _leave() -> None:
    deadline = time.monotonic() + LEAVE_S
    for say, _ in _to_call:
        say(max(0.0, deadline - time.monotonic()))


atexit.register(_leave)  # at import, so that it comes after what a script registers, which may finish its run
