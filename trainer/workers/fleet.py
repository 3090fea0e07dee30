"""Generators that may die or stall: each is replaced, and its work starts again under the same ordinals and seeds.

A generator pulls weights by version, so a newcomer needs nothing but the newest. One that stalls (see `stalls`) is
killed first. Too many losses within a window are no accident (out of memory, a broken machine), nor is work that every
generator is lost with: both end the run by name.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import RayActorError

from trainer.errors import HopelessWork, WorkerLost
from trainer.types import Cost, GeneratorLost, Wave, WeightVersion

from .base import Ticket
from .offers import Offers, StoreOffers
from .stalls import StallWatch

MOST_LOSSES, WINDOW_S = 3, 600.0
"""So many lost generators within the window, or at the same piece of work, are put up with; one more ends the run."""

START_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Work:
    """A wave, or the evaluation of weights, at the generator at place `index` since `began`. So many generators as
    `losses` says were lost while they were at it."""

    ticket: Ticket
    what: Wave | WeightVersion
    index: int = -1
    began: float = 0.0
    losses: int = 0

    @property
    def name(self) -> str:
        """For a person."""
        if isinstance(self.what, Wave):
            return f"the wave of prompts {self.what.ordinals[0]} to {self.what.ordinals[-1]} of the run's order"
        return f"the evaluation of step {self.what.version}"


class Fleet:
    """The generator actors and what they are at.

    Args:
        make: starts the actor of a place.
        count: how many.
        watch: tells which have stalled.
        clock: seconds that only rise.
        offers: how they are told of new weights.
        kill: ends one, whatever it does.
    """

    def __init__(
        self,
        make: Callable[[int], Any],
        count: int,
        watch: StallWatch,
        clock: Callable[[], float] = time.monotonic,
        offers: Offers | None = None,
        kill: Callable[[Any], None] = ray.kill,
    ):
        self._make, self._watch, self._clock, self._kill = make, watch, clock, kill
        self._offers = offers or StoreOffers()
        self.actors = [make(index) for index in range(count)]
        self._work: dict[Any, Work] = {}
        self._newest: WeightVersion | None = None
        self._lost_at: deque[float] = deque()
        self._free_since = [clock()] * count
        self._at: dict[int, Ticket] = {}  # place of a generator: what it is doing of its work
        self._evaluations, self._waves = [0] * count, [0] * count  # that were sent to each
        self._starting: dict[Any, tuple[int, float]] = {}  # ready reference of a newcomer: its place, when asked for

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
            WorkerLost: too many generators are lost.
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
            return self._replaced(work.index, "died", str(error).strip().splitlines()[0])
        del self._work[reference]
        self._free_since[work.index] = self._clock()
        self._goes_on(work.index)
        return work.ticket, result

    def check(self) -> list[tuple[Ticket, GeneratorLost]]:
        """Replace generators that have stalled; the news of each.

        Raises:
            WorkerLost: a newcomer does not start in time, or too many generators are lost.
        """
        for _, since in self._starting.values():
            if self._clock() - since > START_TIMEOUT_S:
                raise WorkerLost(
                    f"no generator could be started within {START_TIMEOUT_S:.0f} s in place of one that was lost; "
                    "the cluster has no room for it. Resume when it has"
                )
        starting = {index for index, _ in self._starting.values()}
        at_work = {work.index: self.actors[work.index] for work in self._work.values() if work.index not in starting}
        return [self._kill_and_replace(index) for index in self._watch.stalled(at_work)]

    def _kill_and_replace(self, index: int) -> tuple[Ticket, GeneratorLost]:
        self._kill(self.actors[index])
        cause = f"no token, verdict or weights for {self._watch.limit_s:g} s, resources.stall_seconds"
        return self._replaced(index, "stalled", cause)

    def _replaced(self, index: int, fate: str, cause: str) -> tuple[Ticket, GeneratorLost]:
        now = self._clock()
        lost = {reference: work for reference, work in self._work.items() if work.index == index}
        under_way = next(work for work in lost.values() if work.ticket == self._at[index])
        waiting = [work for work in lost.values() if work is not under_way]
        under_way = replace(under_way, losses=under_way.losses + 1)
        self._count(now, under_way, f"it {fate}: {cause}")
        for reference in lost:
            del self._work[reference]
        elapsed = max(0.0, now - max(under_way.began, self._free_since[index]))
        self._welcome(index, now)
        del self._at[index]
        for work in sorted([under_way, *waiting], key=_turn):
            self._send(work)
        reason = f"generator {index} {fate} and was replaced; {len(lost)} pieces of work start again ({cause})"
        # What it was at is gone with its figures. Elapsed time is the most that it can have cost.
        return Ticket(under_way.ticket.number, "generator"), GeneratorLost(reason, Cost(elapsed, elapsed))

    def _count(self, now: float, under_way: Work, last: str) -> None:
        """WorkerLost when there is no use in going on."""
        self._lost_at.append(now)
        while now - self._lost_at[0] > WINDOW_S:
            self._lost_at.popleft()
        if len(self._lost_at) > MOST_LOSSES:
            raise WorkerLost(
                f"a generator was lost, the {len(self._lost_at)}th within {WINDOW_S / 60:.0f} minutes, the last "
                f"because {last}. Look for what ends them (memory, drivers), then resume from the newest checkpoint"
            )
        if under_way.losses > MOST_LOSSES:
            raise HopelessWork(
                f"{under_way.losses} generators were lost at {under_way.name}, the last because {last}. Look at what "
                "it asks of them (its prompts, the verifier, memory), then resume from the newest checkpoint"
            )

    def _welcome(self, index: int, now: float) -> None:
        self.actors[index] = self._make(index)
        self._evaluations[index] = self._waves[index] = 0
        self._free_since[index] = now
        self._starting[self.actors[index].ready.remote()] = index, now
        if self._newest is not None:
            StoreOffers().offer(self._newest, [self.actors[index]])

    def _send(self, work: Work) -> None:
        actor, what = self.actors[work.index], work.what
        self._at.setdefault(work.index, work.ticket)
        if isinstance(what, Wave):
            self._waves[work.index] += 1
            reference = actor.generate.remote(what, self._evaluations[work.index])
        else:
            self._evaluations[work.index] += 1
            reference = actor.evaluate.remote(what.version, what.source, self._begun(work.index))
        self._work[reference] = replace(work, began=self._clock())

    def _begun(self, index: int) -> int:
        """Waves that this generator has been let begin: all that were sent to it but those that wait."""
        own = [work for work in self._work.values() if work.index == index and isinstance(work.what, Wave)]
        return self._waves[index] - sum(work.ticket != self._at[index] for work in own)

    def _goes_on(self, index: int) -> None:
        """The generator has finished what it was at and turns to the next."""
        left = [work for work in self._work.values() if work.index == index]
        self._at.pop(index)
        if left:
            self._at[index] = min(left, key=_turn).ticket


def _turn(work: Work) -> tuple[bool, int]:
    """As `turns.Turns` has it."""
    return isinstance(work.what, Wave), work.ticket.number
