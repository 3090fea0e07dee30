"""Comparisons in the memory of the process that serves: one made at a time, none anew before the last one has rested.

A comparison takes up to a second or two of one core. In the API it is made in a thread of the pool, off the event loop;
what bounds its cost is here: few may wait for their turn, the same runs are not compared twice, and while their runs go
on a comparison is kept for ten times as long as it took, as that of a sweep is.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta

from server.clocks import was_set_back
from server.problems import Unavailable

from .find import RESTS, Found

_WAITING = 4
_MOST = 64

_FAILED_RESTS = timedelta(minutes=5)
"""What failed unexpectedly is tried again then, though nothing has come: the fault may have been the machine's."""


@dataclass(frozen=True)
class Made:
    """A comparison, when it was made, and from what: `seen` is another when more has come."""

    found: Found
    at: datetime
    seen: Hashable


class Kept:
    """The newest comparisons of this process, by what was asked."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, Made] = OrderedDict()
        self._turn = threading.Lock()
        self._places = threading.BoundedSemaphore(_WAITING)

    def get(self, asked: Hashable, seen: Hashable, now: datetime, make: Callable[[], Found]) -> Made:
        """What was made of these runs, made anew where more has come and the last one has rested.

        Raises:
            Unavailable: too many wait already.
        """
        kept = self._holds(asked, seen, now)
        if kept is not None:
            return kept
        if not self._places.acquire(blocking=False):
            raise Unavailable("Other comparisons are being made right now. Ask again in a moment.")
        try:
            with self._turn:
                kept = self._holds(asked, seen, now)  # somebody else may have asked the same meanwhile
                return kept or self._keep(asked, Made(make(), now, seen))
        finally:
            self._places.release()

    def _holds(self, asked: Hashable, seen: Hashable, now: datetime) -> Made | None:
        made = self._made.get(asked)
        if made is None:
            return None
        stale = made.seen != seen or made.found.unexpected
        rested = made.at + _rests(made.found) <= now or was_set_back(made.at, now)
        return None if stale and rested else made

    def _keep(self, asked: Hashable, made: Made) -> Made:
        self._made[asked] = made
        self._made.move_to_end(asked)
        while len(self._made) > _MOST:
            self._made.popitem(last=False)
        return made


def _rests(found: Found) -> timedelta:
    return _FAILED_RESTS if found.unexpected else timedelta(seconds=RESTS * found.seconds)
