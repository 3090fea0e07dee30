"""Workers as Ray actors: generators and the learner in processes of their own, running at the same time.

A generator that dies or stalls is replaced (see `fleet`, `stalls`). A learner that dies, or no longer answers, ends the
attempt with a named reason: a new attempt resumes from the newest checkpoint.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Literal, cast

import ray
from ray.exceptions import GetTimeoutError, RayActorError

from forecurve.recipes import Recipe
from trainer.errors import WorkerLost
from trainer.types import Group, LearnerState, Notice, Wave, WeightVersion

from .actors import BroadcastingLearnerActor, GeneratorActor, LearnerActor, Weights
from .base import Result, Ticket
from .calls import value
from .cluster import actor_options, connect, in_a_cluster
from .fleet import START_TIMEOUT_S, Fleet, Work
from .learners import LearnerRanks
from .offers import CollectiveOffers, StoreOffers
from .place import Place, placed
from .stalls import StallWatch

__all__ = ["RayWorkers", "connect", "in_a_cluster", "placed"]


class RayWorkers:
    """See `Workers`. Ray must be initialised (`connect`), and there must be room (`placed`)."""

    steps_in_flight = 2

    def __init__(self, recipe: Recipe, base: Weights, place: Place, threads: int = 1):
        resources = recipe.resources
        self.generators = resources.generators
        self.waves_in_flight = 2 * self.generators
        self._numbers = count()
        self._steps: deque[Ticket] = deque()
        self._limit_s = resources.stall_seconds
        device = "cuda" if resources.gpus else "cpu"
        options = actor_options(recipe, threads)
        arguments = (recipe, ray.put(dict(base)), device, threads)
        make_remote: Any = ray.remote
        threads_of = {"mail": 1, "collective": 1, "evaluation": 1}
        generator = make_remote(concurrency_groups=threads_of)(GeneratorActor)
        learner = make_remote(concurrency_groups={"watch": 1})(LearnerActor)
        sender, collective = learner, resources.weight_transfer == "collective"
        if collective:
            sender = make_remote(concurrency_groups={"watch": 1, "collective": 1})(BroadcastingLearnerActor)

        def started(actor: Any, number: int, *more: int) -> Any:
            return actor.options(scheduling_strategy=place.of(number), **options).remote(*arguments, *more)

        self._learner = LearnerRanks(
            lambda rank: started(learner if rank else sender, self.generators + rank, rank),
            resources.learners,
            StallWatch(self._limit_s),
        )
        offers = CollectiveOffers(self._learner.actors[0]) if collective else StoreOffers()
        watch = StallWatch(self._limit_s)
        self._fleet = Fleet(lambda index: started(generator, index), self.generators, watch, offers=offers)
        self.process_ids = self._wait_until_started()
        self._learner.meet(self._get)

    def initial_weights(self) -> WeightVersion:
        """See `Workers`."""
        return self._learner.weights(self._get)

    def offer(self, weights: WeightVersion) -> None:
        """See `Workers`."""
        self._fleet.offer(weights)

    def start_wave(self, wave: Wave) -> Ticket:
        """See `Workers`. The generator with the least work gets it."""
        ticket = self._ticket("wave")
        self._fleet.start(Work(ticket, wave))
        return ticket

    def start_evaluation(self, weights: WeightVersion) -> Ticket:
        """See `Workers`. One generator does it between two waves; the others, and the learner, go on."""
        ticket = self._ticket("evaluation")
        self._fleet.start(Work(ticket, weights))
        return ticket

    def start_step(self, groups: Sequence[Group]) -> Ticket:
        """See `Workers`."""
        ticket = self._ticket("step")
        self._steps.append(ticket)
        self._learner.start_step(groups)
        return ticket

    def wait(self, timeout: float) -> list[tuple[Ticket, Result]]:
        """See `Workers`."""
        notices: list[tuple[Ticket, Result]] = [
            (self._ticket("generator"), Notice(text)) for text in self._fleet.news()
        ]
        pending = [*self._learner.references, *self._fleet.references]
        if notices or not pending:
            return notices
        self._learner.check()
        if lost := self._fleet.check():
            return [*lost]
        ready, _ = ray.wait(pending, num_returns=1, timeout=timeout)
        return [news for reference in ready if (news := self._finished(reference)) is not None]

    def arrays(self, weights: WeightVersion) -> Weights:
        """See `Workers`."""
        return weights.source if isinstance(weights.source, Mapping) else cast(Weights, self._get(weights.source))

    def learner_state(self) -> LearnerState:
        """See `Workers`."""
        return self._learner.state(self._get)

    def load_learner_state(self, state: LearnerState) -> None:
        """See `Workers`."""
        self._learner.load_state(state, self._get)

    def close(self) -> None:
        """See `Workers`."""
        for actor in [*self._fleet.actors, *self._learner.actors]:
            ray.kill(actor)

    def _finished(self, reference: Any) -> tuple[Ticket, Result] | None:
        if reference not in self._learner.references:
            return self._fleet.finished(reference, value)
        result = self._learner.finished(reference, lambda ref: self._get(ref, "step"))
        return None if result is None else (self._steps.popleft(), result)

    def _get(self, reference: Any, doing: str = "call") -> Any:
        try:
            return value(reference, self._limit_s)
        except GetTimeoutError:
            limit = f"{self._limit_s:g} s, resources.stall_seconds"
            raise WorkerLost(
                f"the learner did not answer a {doing} within {limit}; resume with a new attempt"
            ) from None
        except RayActorError as error:
            raise WorkerLost(f"the learner died during a {doing}: {str(error).strip().splitlines()[0]}") from None

    def _ticket(self, kind: Literal["wave", "evaluation", "step", "generator"]) -> Ticket:
        return Ticket(next(self._numbers), kind)

    def _wait_until_started(self) -> list[int]:
        actors = [*self._fleet.actors, *self._learner.actors]
        try:
            return cast(list[int], value([actor.ready.remote() for actor in actors], START_TIMEOUT_S))
        except GetTimeoutError:
            raise WorkerLost(
                f"Ray did not start the {len(actors)} actors within {START_TIMEOUT_S:.0f} s of having room for them"
            ) from None
        except RayActorError as error:
            raise WorkerLost(f"an actor did not start: {str(error).strip()[-500:]}") from None
