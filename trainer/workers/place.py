"""A run's place on the cluster: room for all of its actors at once, or none.

Actors that were asked for one by one could find room for a part of one run and a part of another, which would then
wait for each other for ever. A placement group is taken whole; a run that finds no room waits until others leave it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from forecurve.recipes import Recipe
from trainer.errors import ConfigurationError, StopAsked, WorkerLost

TOO_SMALL_S = 300.0
"""So long a cluster that is too small even when nothing runs on it may take to grow; then the attempt ends by name."""
_LOOK_S = 1.0
_PATIENCE_S = 3.0  # a wait of less is nothing to speak of

Devices = Mapping[str, float]
"""Amounts by Ray's names, CPU and GPU."""


@dataclass(frozen=True)
class Place:
    """Room for a run's actors: its generators first, then the learner's ranks."""

    group: PlacementGroup

    def of(self, actor: int) -> PlacementGroupSchedulingStrategy:
        """Where the actor of that number is to be. One that replaces it finds the room that it leaves."""
        return PlacementGroupSchedulingStrategy(self.group, placement_group_bundle_index=actor)


def actors_of(recipe: Recipe) -> int:
    """How many a run has."""
    return recipe.resources.generators + recipe.resources.learners


def share_of(recipe: Recipe) -> dict[str, float]:
    """What each actor reserves: an equal share of the recipe's devices, so that the driver needs none."""
    actors, wanted = actors_of(recipe), recipe.resources
    gpus = wanted.gpus / actors
    return {"CPU": _part(wanted.cpus / actors), "GPU": math.floor(gpus) if gpus >= 1 else _part(gpus)}


def _part(amount: float) -> float:
    """As Ray counts, in ten thousandths; never more, or all parts together would be more than there is."""
    return max(math.floor(amount * 1e4 + 1e-6), 1) / 1e4 if amount else 0.0


@contextmanager
def placed(
    recipe: Recipe,
    stop_reason: Callable[[], str | None] = lambda: None,
    tell: Callable[[str], None] = lambda text: None,
    *,
    may_grow: bool = True,
) -> Iterator[Place]:
    """The run's place once the cluster has room for it; given back at the end. Ray must be initialised.

    Args:
        stop_reason: asked while it waits.
        tell: is told what it waits for, and again when that has changed.
        may_grow: whether a cluster that is too small may become larger.

    Raises:
        StopAsked: somebody wants the run to stop, which has not begun.
        ConfigurationError: the cluster is too small for the run, and stays so.
        WorkerLost: it is too small, and did not grow.
    """
    share = {name: amount for name, amount in share_of(recipe).items() if amount}
    wait = Wait(share, actors_of(recipe), tell)
    if not may_grow:
        wait.refuse(machines())
    group = placement_group([share] * actors_of(recipe), strategy="PACK")
    try:
        while not group.wait(_LOOK_S):
            if reason := stop_reason():
                raise StopAsked(reason)
            wait.look(machines())
        wait.over()
        yield Place(group)
    finally:
        remove_placement_group(group)


def machines() -> list[Devices]:
    """What each living machine of the cluster has when nothing runs on it."""
    nodes = ray.nodes()  # type: ignore[no-untyped-call]
    return [node["Resources"] for node in nodes if node["Alive"]]


class Wait:
    """What there is to say of a wait for room.

    Args:
        share: what each actor wants.
        actors: how many there are.
        tell: is told.
        clock: seconds that only rise.
    """

    def __init__(
        self, share: Devices, actors: int, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ):
        self._share, self._actors, self._tell, self._clock = share, actors, tell, clock
        self._began = self._fitted = clock()
        self._told: str | None = None

    def look(self, sizes: Sequence[Devices]) -> None:
        """There is no room yet on machines of these sizes.

        Raises:
            WorkerLost: there would be none if they were empty, and that for longer than they may take to grow.
        """
        now = self._clock()
        if fits(self._share, self._actors, sizes):
            self._fitted, said = now, f"waits for room on the cluster: {self._need(sizes)}"
        else:
            said = self._too_small(sizes)
        if now - self._fitted > TOO_SMALL_S:
            raise WorkerLost(said)
        if said != self._told and now - self._began > _PATIENCE_S:
            self._tell(said)
            self._told = said

    def refuse(self, sizes: Sequence[Devices]) -> None:
        """ConfigurationError where there would never be room on machines of these sizes."""
        if not fits(self._share, self._actors, sizes):
            raise ConfigurationError(self._too_small(sizes))

    def over(self) -> None:
        """There is room now."""
        if self._told is not None:
            self._tell("found room on the cluster")

    def _too_small(self, sizes: Sequence[Devices]) -> str:
        way_out = "ask for less (resources.cpus, resources.gpus), or add machines"
        return f"the cluster is too small: {self._need(sizes)}; {way_out}"

    def _need(self, sizes: Sequence[Devices]) -> str:
        has = {name: sum(size.get(name, 0.0) for size in sizes) for name in self._share}
        parts = f"{self._actors} x {_words(self._share)} at once"
        return f"the run needs {parts}, and its {_machines(len(sizes))} {_words(has)}"


def fits(share: Devices, actors: int, sizes: Sequence[Devices]) -> bool:
    """Whether machines of these sizes have room for all actors when nothing else is on them."""
    each = (min(int(size.get(name, 0.0) / amount + 1e-6) for name, amount in share.items()) for size in sizes)
    return sum(each) >= actors


def _words(devices: Devices) -> str:
    """`4 CPUs and 1 GPU`."""
    return " and ".join(f"{amount:g} {name}{'' if amount == 1 else 's'}" for name, amount in devices.items())


def _machines(count: int) -> str:
    return "one machine has" if count == 1 else f"{count} machines have"
