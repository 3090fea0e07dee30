"""The learner's ranks as actors that are always asked together: every rank gets every call, rank 0 has the answer."""

from __future__ import annotations

from collections import deque
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
        self._steps: deque[dict[Any, int]] = deque()  # by step, oldest first: call to rank
        self._results: dict[int, StepResult] = {}  # of the oldest, by rank

    @property
    def references(self) -> list[Any]:
        """Of the oldest step under way. A later one may be known to be done before it, and waits its turn."""
        return list(self._steps[0]) if self._steps else []

    def meet(self, get: Get) -> None:
        """Let the ranks of a sharded learner find each other."""
        if len(self.actors) > 1:
            address = get(self.actors[0].address.remote())
            get([actor.join.remote(address, len(self.actors)) for actor in self.actors])

    def start_step(self, groups: Sequence[Group]) -> None:
        """One optimiser step, after those that were started before."""
        shared = ray.put(list(groups))
        self._steps.append({actor.step.remote(shared): rank for rank, actor in enumerate(self.actors)})

    def check(self) -> None:
        """WorkerLost when a rank that is at a step no longer answers. A rank that waits for another one does."""
        at_work = self._steps[0].values() if self._steps else ()
        silent = self._watch.stalled({rank: self.actors[rank] for rank in at_work})
        if silent:
            raise WorkerLost(
                f"the learner (rank {silent[0]} of {len(self.actors)}) has not answered for {self._watch.limit_s:g} s, "
                "resources.stall_seconds, during a step; a new attempt resumes from the newest checkpoint"
            )

    def finished(self, reference: Any, get: Get) -> StepResult | None:
        """The step's result once all ranks are done: rank 0's, with what all of them cost and the most that one of
        them had in memory."""
        rank = self._steps[0].pop(reference)
        self._results[rank] = get(reference)
        if self._steps[0]:
            return None
        self._steps.popleft()
        results, self._results = self._results, {}
        costs = [result.cost for result in results.values()]
        cost = Cost(sum(cost.cpu_seconds for cost in costs), max(cost.wall_seconds for cost in costs))
        memories = [result.memory for result in results.values() if result.memory is not None]
        return replace(results[0], cost=cost, memory=max(memories, key=lambda memory: memory.peak, default=None))

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
