"""The learner's ranks as actors that are always asked together: every rank gets every call, rank 0 has the answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import ray

from trainer.errors import WorkerLost
from trainer.types import Cost, Group, LearnerState, StepResult, WeightVersion

from .stalls import StallWatch

Get = Callable[[Any], Any]


class LearnerRanks:
    """One or more learner actors. Their death ends the attempt: a rank cannot be replaced without its optimiser."""

    def __init__(self, make: Callable[[int], Any], count: int, watch: StallWatch):
        self._watch = watch
        self.actors = [make(rank) for rank in range(count)]
        self._stepping: dict[Any, int] = {}  # call to rank
        self._results: defaultdict[int, dict[int, StepResult]] = defaultdict(dict)  # by version, by rank

    @property
    def references(self) -> list[Any]:
        """Of steps under way."""
        return list(self._stepping)

    def meet(self, get: Get) -> None:
        """Let the ranks of a sharded learner find each other."""
        if len(self.actors) > 1:
            address = get(self.actors[0].address.remote())
            get([actor.join.remote(address, len(self.actors)) for actor in self.actors])

    def start_step(self, groups: Sequence[Group]) -> None:
        """One optimiser step, after those that were started before."""
        shared = ray.put(list(groups))
        self._stepping |= {actor.step.remote(shared): rank for rank, actor in enumerate(self.actors)}

    def rehearse(self) -> None:
        """See `Learner.rehearse`; nobody waits for it."""
        for actor in self.actors:
            actor.rehearse.remote()

    def check(self) -> None:
        """WorkerLost when a rank that is at a step no longer answers. A rank that waits for another one does."""
        silent = self._watch.stalled({rank: self.actors[rank] for rank in self._stepping.values()})
        if silent:
            raise WorkerLost(
                f"the learner (rank {silent[0]} of {len(self.actors)}) has not answered for {self._watch.limit_s:g} s, "
                "resources.stall_seconds, during a step; a new attempt resumes from the newest checkpoint"
            )

    def finished(self, reference: Any, get: Get) -> StepResult | None:
        """The step's result once all ranks are done: rank 0's, with what all of them cost."""
        rank = self._stepping.pop(reference)
        result: StepResult = get(reference)
        self._results[result.version][rank] = result
        if len(self._results[result.version]) < len(self.actors):
            return None
        results = self._results.pop(result.version)
        costs = [result.cost for result in results.values()]
        cost = Cost(sum(cost.cpu_seconds for cost in costs), max(cost.wall_seconds for cost in costs))
        return replace(results[0], cost=cost)

    def weights(self, get: Get) -> WeightVersion:
        """The weights now, by reference."""
        answers: list[WeightVersion] = get([actor.weights.remote() for actor in self.actors])
        return answers[0]

    def state(self, get: Get) -> LearnerState:
        """See `Learner.state`."""
        answers: list[LearnerState] = get([actor.state.remote() for actor in self.actors])
        return answers[0]

    def load_state(self, state: LearnerState, get: Get) -> None:
        """See `Learner.load_state`."""
        shared = ray.put(state)
        get([actor.load_state.remote(shared) for actor in self.actors])
