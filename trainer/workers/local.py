"""Workers in this process, one thing at a time, in an order that depends on nothing but the recipe.

The generator runs as far ahead as the staleness bound lets it, as it does under Ray when the learner is the slower
side; weights are swapped between waves. The same recipe and seed give the same numbers, bit for bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from numpy.typing import NDArray

from forecurve.recipes import Recipe
from trainer.base_weights.weights import load_into
from trainer.generation.generator import Generator
from trainer.learner import Learner
from trainer.models import build_model
from trainer.tasks import build_task
from trainer.types import Group, LearnerState, Wave, WeightVersion

from .base import Result, Ticket

_ORDER = ("evaluation", "wave", "step")
"""What is done first when several things could be."""


class LocalWorkers:
    """See `Workers`."""

    generators = 1
    waves_in_flight = 2
    steps_in_flight = 1

    def __init__(self, recipe: Recipe, base: Mapping[str, NDArray[Any]]):
        self._learner = Learner(recipe, load_into(build_model(recipe), base))
        self._generator = Generator(recipe, build_task(recipe), lambda: load_into(build_model(recipe), base))
        self._offered = WeightVersion(0, base)
        self._numbers = count()
        self._queues: dict[str, deque[tuple[Ticket, Callable[[], Result]]]] = {kind: deque() for kind in _ORDER}

    def initial_weights(self) -> WeightVersion:
        """See `Workers`."""
        return WeightVersion(self._learner.version, self._learner.weights())

    def offer(self, weights: WeightVersion) -> None:
        """See `Workers`."""
        self._offered = weights

    def start_wave(self, wave: Wave) -> Ticket:
        """See `Workers`."""
        return self._queue("wave", lambda: self._generator.generate(wave, self._newest))

    def start_evaluation(self, weights: WeightVersion) -> Ticket:
        """See `Workers`."""
        return self._queue("evaluation", lambda: self._generator.evaluate(weights.version, weights.source))

    def start_step(self, groups: Sequence[Group]) -> Ticket:
        """See `Workers`."""
        return self._queue("step", lambda: self._learner.step(groups))

    def wait(self, timeout: float) -> list[tuple[Ticket, Result]]:
        """See `Workers`. Does the next piece of work, here and now."""
        for kind in _ORDER:
            if self._queues[kind]:
                ticket, work = self._queues[kind].popleft()
                return [(ticket, work())]
        return []

    def arrays(self, weights: WeightVersion) -> Mapping[str, NDArray[Any]]:
        """See `Workers`."""
        source: Mapping[str, NDArray[Any]] = weights.source
        return source

    def learner_state(self) -> LearnerState:
        """See `Workers`."""
        return self._learner.state()

    def load_learner_state(self, state: LearnerState) -> None:
        """See `Workers`."""
        self._learner.load_state(state)

    def close(self) -> None:
        """See `Workers`."""
        for queue in self._queues.values():
            queue.clear()
        self._generator.close()

    def _newest(self, held: int) -> tuple[int, Mapping[str, NDArray[Any]]] | None:
        newer = self._offered.version > held
        return (self._offered.version, self._offered.source) if newer else None

    def _queue(self, kind: Any, work: Callable[[], Result]) -> Ticket:
        ticket = Ticket(next(self._numbers), kind)
        self._queues[kind].append((ticket, work))
        return ticket
