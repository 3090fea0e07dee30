"""The generator: waves of requests through an engine, with weights swapped in as they arrive; and evaluations."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from forecurve.recipes import Recipe
from trainer.algorithm.rewards import rewards
from trainer.base_weights.weights import load_into
from trainer.engines import build_engine, interruption_places
from trainer.generation.counted_engine import CountedEngine
from trainer.generation.evaluation import Evaluator
from trainer.generation.self_check import check
from trainer.measuring.clock import Stopwatch
from trainer.memory import generator_memory_named
from trainer.models.base import Policy
from trainer.streams import Stream
from trainer.tasks import Task
from trainer.types import EvaluationResult, Group, Request, Responses, Wave, WaveResult

Weights = Mapping[str, NDArray[Any]]
Newest = Callable[[int], tuple[int, Weights] | None]
"""Given the version held: newer weights and their version, or None. Called between decode steps; must not block."""


class Generator:
    """Samples groups with the newest weights it is offered, and judges given weights on held-out prompts.

    One engine does both: an evaluation runs between two waves, and the next wave begins by taking the newest weights.
    Before its first work it checks that the engine's log-probs are the learner's (see `self_check`).
    """

    def __init__(self, recipe: Recipe, task: Task, make_model: Callable[[], Policy], device: str = "cpu"):
        self._recipe, self._task, self._make_model = recipe, task, make_model
        self._engine = CountedEngine(build_engine(recipe, task, make_model, device))
        self._evaluator = Evaluator(recipe, task, self._engine)
        self._checked = False
        self._difference: dict[str, float] = {}  # of engine and learner, until an evaluation tells it
        self._free_since = time.perf_counter()
        self._paused = 0.0  # seconds that weights took, in the present wave
        self._counted: dict[str, float] = {}  # the task's counts that were told already

    @property
    def signs(self) -> float:
        """Decode steps, weights taken and verdicts so far. Read by another thread: it stands still when work does."""
        return self._engine.signs + self._task.metrics().get("verifier/judged", 0.0)

    def check(self) -> None:
        """See `self_check`, of the weights that the generator was made with; without it, its first work begins so.

        Raises:
            EngineMismatch: engine and learner are further apart than the recipe allows.
        """
        self._self_check(None)

    def generate(self, wave: Wave, newest: Newest) -> WaveResult:
        """The groups of a wave, in order, with rewards. Weights are swapped between decode steps, caches kept.

        `newest` must by now be able to give at least `wave.minimum_version`.
        """
        with generator_memory_named(self._recipe):
            return self._generated(wave, newest)

    def _generated(self, wave: Wave, newest: Newest) -> WaveResult:
        waited, self._paused = time.perf_counter() - self._free_since, 0.0
        self._self_check(self._swap(newest))
        watch = Stopwatch.start(self._engine.cpu_seconds, self._task.cpu_seconds)
        assert self._engine.version >= wave.minimum_version, (self._engine.version, wave.minimum_version)
        requests = [self._request(ordinal, index) for ordinal, index in wave.items]
        self._engine.submit(requests)
        finished: list[Responses] = []
        while self._engine.busy:
            finished += self._engine.step()
            self._swap(newest)
        by_key = {responses.key: responses for responses in finished}
        groups = [self._group(request, by_key[request.key]) for request in requests]
        cost = watch.cost()
        self._free_since = time.perf_counter()
        share = cost.cpu_seconds / len(groups), cost.wall_seconds / len(groups)
        charged = tuple(replace(group, cpu_seconds=share[0], wall_seconds=share[1]) for group in groups)
        return WaveResult(charged, cost, self._paused, waited, self._new_counts())

    def evaluate(self, step: int, weights: Weights) -> EvaluationResult:
        """See `Evaluator.evaluate`. The first says in its details how far engine and learner are apart."""
        with generator_memory_named(self._recipe):
            if not self._checked:
                self._engine.load_weights(step, weights)
                self._self_check(weights)
            result = self._evaluator.evaluate(step, weights)
        told, self._difference = self._difference, {}
        self._free_since = time.perf_counter()
        return replace(result, details={**result.details, **told})

    def close(self) -> None:
        """Free the engine and end the task's helpers."""
        self._engine.close()
        self._task.close()

    def _self_check(self, weights: Weights | None) -> None:
        """Once, with an idle engine: compare it with the learner's forward pass of the weights that it holds.

        None: those it was made with.
        """
        if self._checked:
            return
        policy = self._make_model()
        found = check(self._recipe, self._task, self._engine, load_into(policy, weights) if weights else policy)
        self._checked = True
        self._difference = {"self_check_logprob_diff": found.mean, "self_check_logprob_diff_max": found.largest}

    def _swap(self, newest: Newest) -> Weights | None:
        """Take newer weights if there are any; which."""
        began = time.perf_counter()
        offered = newest(self._engine.version)
        if offered is None:
            return None
        stood = self._engine.load_weights(*offered)
        self._paused += time.perf_counter() - began if stood is None else stood
        return offered[1]

    def _new_counts(self) -> dict[str, float]:
        """What the task counted since the last wave."""
        before, self._counted = self._counted, dict(self._task.metrics())
        return {name: count - before.get(name, 0.0) for name, count in self._counted.items()}

    def _request(self, ordinal: int, index: int) -> Request:
        samples, seed = self._recipe.batch.generations_per_prompt, (Stream.TRAINING_NOISE, self._recipe.seed, ordinal)
        places = interruption_places(self._recipe, seed, samples)
        return Request(ordinal, self._task.training_prompt(index), samples, seed, places)

    def _group(self, request: Request, responses: Responses) -> Group:
        passed = self._task.passed(request.prompt, responses.tokens, responses.lengths.tolist())
        return Group(request.key, request.prompt, responses, rewards(self._recipe, passed, responses), passed)
