"""Generators that may die: each is replaced, and what it was doing starts again under the same ordinals and seeds.

A generator pulls weights by version, so a newcomer needs nothing but the newest. Too many deaths within a window are no
accident (out of memory, a broken machine) and end the run by name.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ray.exceptions import RayActorError

from trainer.errors import WorkerLost
from trainer.types import Cost, GeneratorLost, Wave, WeightVersion

from .base import Ticket
from .offers import Offers, StoreOffers

MOST_DEATHS, WINDOW_S = 3, 600.0
"""So many deaths within the window are put up with; one more ends the run."""

PLACEMENT_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Work:
    """A wave, or the evaluation of weights, at the generator at place `index` since `began`."""

    ticket: Ticket
    what: Wave | WeightVersion
    index: int = -1
    began: float = 0.0


class Fleet:
    """The generator actors and what they are at.

    Args:
        make: starts one actor.
        count: how many.
        clock: seconds that only rise.
        offers: how they are told of new weights.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        count: int,
        clock: Callable[[], float] = time.monotonic,
        offers: Offers | None = None,
    ):
        self._make, self._clock, self._offers = make, clock, offers or StoreOffers()
        self.actors = [make() for _ in range(count)]
        self._work: dict[Any, Work] = {}
        self._newest: WeightVersion | None = None
        self._deaths: deque[float] = deque()
        self._free_since = [clock()] * count
        self._starting: dict[Any, float] = {}  # ready reference of a newcomer to when it was asked for

    @property
    def references(self) -> list[Any]:
        """Of all work under way, and of newcomers that are starting."""
        return [*self._work, *self._starting]

    def offer(self, weights: WeightVersion) -> None:
        """Tell every generator that these weights exist."""
        self._newest = weights
        self._offers.offer(weights, self.actors, complete=not self._starting)

    def news(self) -> list[str]:
        """What a person should know of the way weights take."""
        return self._offers.news()

    def start(self, work: Work) -> None:
        """Give work to the generator that has least."""
        loads = [sum(other.index == index for other in self._work.values()) for index in range(len(self.actors))]
        self._send(replace(work, index=loads.index(min(loads))))

    def finished(self, reference: Any, get: Callable[[Any], Any]) -> tuple[Ticket, Any] | None:
        """What came of a reference: a result, the news of a loss, or None (a newcomer is there).

        Raises:
            WorkerLost: generators die too fast.
        """
        if reference in self._starting:
            del self._starting[reference]
            with suppress(RayActorError):  # its work says so too, and that is where it is dealt with
                get(reference)
            return None
        work = self._work[reference]
        try:
            result = get(reference)
        except RayActorError as error:
            return Ticket(work.ticket.number, "generator"), self._replaced(work.index, error)
        del self._work[reference]
        self._free_since[work.index] = self._clock()
        return work.ticket, result

    def check(self) -> None:
        """WorkerLost when a newcomer does not start in time."""
        for since in self._starting.values():
            if self._clock() - since > PLACEMENT_TIMEOUT_S:
                raise WorkerLost(
                    f"no generator could be started within {PLACEMENT_TIMEOUT_S:.0f} s in place of one that died; "
                    "the cluster has no room for it. Resume when it has"
                )

    def _replaced(self, index: int, error: RayActorError) -> GeneratorLost:
        now, cause = self._clock(), str(error).strip().splitlines()[0]
        self._count(now, cause)
        lost = {reference: work for reference, work in self._work.items() if work.index == index}
        for reference in lost:
            del self._work[reference]
        first = min((work.began for work in lost.values()), default=now)
        elapsed = max(0.0, now - max(first, self._free_since[index]))
        self._welcome(index, now)
        for work in sorted(lost.values(), key=lambda work: work.ticket.number):
            self._send(work)
        reason = f"generator {index} died and was replaced; {len(lost)} pieces of work start again ({cause})"
        # What it was at is gone with its figures. Elapsed time is the most that it can have cost.
        return GeneratorLost(reason, Cost(elapsed, elapsed))

    def _count(self, now: float, cause: str) -> None:
        self._deaths.append(now)
        while now - self._deaths[0] > WINDOW_S:
            self._deaths.popleft()
        if len(self._deaths) > MOST_DEATHS:
            raise WorkerLost(
                f"a generator died, the {len(self._deaths)}th within {WINDOW_S / 60:.0f} minutes, the last: {cause}. "
                "Look for what kills them (memory, drivers), then resume from the newest checkpoint"
            )

    def _welcome(self, index: int, now: float) -> None:
        self.actors[index] = self._make()
        self._free_since[index] = now
        self._starting[self.actors[index].ready.remote()] = now
        if self._newest is not None:
            StoreOffers().offer(self._newest, [self.actors[index]])

    def _send(self, work: Work) -> None:
        actor, what = self.actors[work.index], work.what
        if isinstance(what, Wave):
            reference = actor.generate.remote(what)
        else:
            reference = actor.evaluate.remote(what.version, what.source)
        self._work[reference] = replace(work, began=self._clock())
