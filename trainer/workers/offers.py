"""How generators are told of new weights: by reference alone, or with a broadcast beside it.

The reference always goes along. A generator that is not in the group, or whose broadcast fails, pulls that version
from the object store, so that no change among the generators ever holds up the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import ray

from trainer.types import WeightVersion

from .calls import ended

PATIENCE_S = 90.0
"""After which a call that has not come back counts as a fault: more than the calls themselves may take."""
MOST_FAULTS = 3
"""So many faults without a broadcast that worked between them, and the run stays with the store."""


class Offers(Protocol):
    """Tells generators of new weights."""

    def offer(self, weights: WeightVersion, generators: Sequence[Any], complete: bool) -> None:
        """Tell these generators; not `complete` while one of them is still starting. Does not wait."""

    def news(self) -> list[str]:
        """What went wrong since the last call, for a person."""


class StoreOffers:
    """Generators pull every version from the object store."""

    def offer(self, weights: WeightVersion, generators: Sequence[Any], complete: bool = True) -> None:
        """See `Offers`."""
        for actor in generators:
            actor.offer.remote(weights.version, [weights.source])

    def news(self) -> list[str]:
        """See `Offers`."""
        return []


class CollectiveOffers:
    """The learner broadcasts every version to the generators of a group, which is made anew when they change.

    While there is no group, or it is busy with an older version, the version goes by the store.

    Args:
        learner: the actor that sends.
        ready: those of some references whose calls have ended.
        get: the value of a reference; raises what its call raised.
        clock: seconds that only rise.
    """

    def __init__(
        self,
        learner: Any,
        ready: Callable[[list[Any]], list[Any]] = ended,
        get: Callable[[Any], Any] = ray.get,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._learner, self._ready, self._get, self._clock = learner, ready, get, clock
        self._address = learner.host.remote()
        self._epoch, self._members = 0, list[Any]()
        self._calls: dict[Any, str] = {}  # what the group is at: a reference to whose call it is
        self._doing, self._since = "", 0.0
        self._faults, self._news = 0, list[str]()

    def offer(self, weights: WeightVersion, generators: Sequence[Any], complete: bool) -> None:
        """See `Offers`."""
        self._look()
        grouped = _same(self._members, generators)
        if grouped and not self._calls:
            self._broadcast(weights)
            return
        StoreOffers().offer(weights, generators)
        if complete and not grouped and not self._calls and self._faults < MOST_FAULTS:
            self._meet(generators)

    def news(self) -> list[str]:
        """See `Offers`."""
        told, self._news = self._news, []
        return told

    def _meet(self, generators: Sequence[Any]) -> None:
        self._epoch += 1
        self._members = list(generators)
        size = 1 + len(generators)
        self._begin("meeting")
        self._calls[self._learner.meet.remote(self._address, self._epoch, 0, size)] = "the learner"
        for index, actor in enumerate(generators):
            reference = actor.meet.remote(self._address, self._epoch, 1 + index, size)
            self._calls[reference] = f"generator {index}"

    def _broadcast(self, weights: WeightVersion) -> None:
        version, source = weights.version, [weights.source]
        self._begin(f"broadcast of version {version}")
        self._calls[self._learner.broadcast.remote(version, source, self._epoch)] = "the learner"
        for index, actor in enumerate(self._members):
            actor.offer.remote(version, source, self._epoch)
            self._calls[actor.receive.remote(version, self._epoch)] = f"generator {index}"

    def _begin(self, doing: str) -> None:
        self._doing, self._since = doing, self._clock()

    def _look(self) -> None:
        """Take note of calls that have ended, and of those that should have."""
        if not self._calls:
            return
        faults = [fault for reference in self._ready(list(self._calls)) if (fault := self._ended(reference))]
        waited = self._clock() - self._since
        if self._calls and (faults or waited > PATIENCE_S):
            faults.append(f"no answer within {waited:.0f} s from {', '.join(self._calls.values())}")
        if faults:
            self._dissolve(faults)
        elif not self._calls and self._doing != "meeting":
            self._faults = 0

    def _ended(self, reference: Any) -> str | None:
        name = self._calls.pop(reference)
        try:
            self._get(reference)
        except Exception as error:  # noqa: BLE001 - whatever it is, the store still works
            reason = str(getattr(error, "cause", None) or error).strip() or type(error).__name__
            return f"{name}: {reason.splitlines()[0]}"
        return None

    def _dissolve(self, faults: list[str]) -> None:
        self._members, self._calls = [], {}
        self._faults += 1
        then = "a new group is made" if self._faults < MOST_FAULTS else "it stays so: too many faults in a row"
        self._news.append(
            f"weights go by the object store after a {self._doing} that failed ({'; '.join(faults)}); {then}"
        )


def _same(members: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(members) == len(others) and all(a is b for a, b in zip(members, others, strict=True))
