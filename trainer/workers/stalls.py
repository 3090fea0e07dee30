"""Workers that are alive and get nowhere: found by signs of life that no longer come.

Every worker at work is asked for a number that changes with each sign of life, one question at a time; a thread beside
that of the work answers. A worker has stalled when for longer than the limit its number stood still, or no answer
came. Only time in which somebody looked counts: while the controller does something else, or this machine is
suspended, nobody grows silent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ray.exceptions import RayActorError

from .calls import ended, value

ASK_S = 10.0
"""Seconds between two questions to a worker, or a tenth of the limit where that is less. Between two looks no more
than this counts as silence, so that a stall is never found in fewer than ten looks."""


@dataclass(slots=True)
class _Watched:
    actor: Any
    question: Any = None
    asked: float = float("-inf")
    signs: Any = None
    silent: float = 0.0


class StallWatch:
    """Knows how long each worker has been silent.

    Args:
        limit_s: silence beyond this is a stall, in seconds.
        clock: seconds that only rise.
        ended: those of some references whose calls have ended.
        get: the value of a reference.
    """

    def __init__(
        self,
        limit_s: float,
        clock: Callable[[], float] = time.monotonic,
        ended: Callable[[list[Any]], list[Any]] = ended,
        get: Callable[[Any], Any] = value,
    ):
        self.limit_s = limit_s
        self._clock, self._ended, self._get = clock, ended, get
        self._stride = min(ASK_S, limit_s / 10)
        self._looked = clock()
        self._watched: dict[int, _Watched] = {}

    def stalled(self, working: Mapping[int, Any]) -> list[int]:
        """Look at the actors that have work, by their place; the places of those that have stalled.

        An actor is watched anew from when it comes among them.
        """
        now = self._clock()
        passed, self._looked = min(now - self._looked, self._stride), now
        before, self._watched = self._watched, {}
        for place, actor in working.items():
            watched = before.get(place)
            if watched is None or watched.actor is not actor:
                watched = _Watched(actor)
            watched.silent = 0.0 if self._shows_life(watched, now) else watched.silent + passed
            self._watched[place] = watched
        return [place for place, watched in self._watched.items() if watched.silent > self.limit_s]

    def _shows_life(self, watched: _Watched, now: float) -> bool:
        """Whether an answer with another number than before has come; asks when it is time."""
        if watched.question is None:
            if now - watched.asked >= self._stride:
                watched.question, watched.asked = watched.actor.signs.remote(), now
            return False
        if not self._ended([watched.question]):
            return False
        question, watched.question = watched.question, None
        try:
            signs = self._get(question)
        except RayActorError:  # its work says so too, and that is where it is dealt with
            return False
        before, watched.signs = watched.signs, signs
        return bool(signs != before)
