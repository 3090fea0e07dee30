"""The generator: waves of requests through an engine, with weights swapped in as they arrive; and evaluations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forecurve.recipes import Recipe
from trainer.clock import Stopwatch
from trainer.engines import Engine, TorchEngine
from trainer.engines.base import SamplingConfig
from trainer.models.base import Policy
from trainer.tasks import Task
from trainer.types import EvaluationResult, Group, Prompt, Request, Responses, Wave, WaveResult

Weights = Mapping[str, NDArray[Any]]
Newest = Callable[[int], tuple[int, Weights] | None]
"""Given the version held: newer weights and their version, or None. Called between decode steps; must not block."""

EVALUATION_PROMPTS_AT_ONCE = 128
"""Held-out prompts decoded together in an evaluation (times its samples)."""


class Generator:
    """Samples groups with the newest weights it is offered, and judges given weights on held-out prompts."""

    def __init__(self, recipe: Recipe, task: Task, make_model: Callable[[], Policy], device: str = "cpu"):
        self._recipe, self._task = recipe, task
        sampling = SamplingConfig(
            max_tokens=recipe.generation.max_tokens,
            temperature=recipe.generation.temperature,
            end_tokens=(task.end_token,),
            logits_precision=recipe.algorithm.logits_precision,
        )
        self._engine: Engine = TorchEngine(make_model(), sampling, device=device)
        self._evaluation_engine: Engine = TorchEngine(make_model(), sampling, device=device)
        self._held_out = task.held_out_prompts(recipe.evaluation.prompts)

    def generate(self, wave: Wave, newest: Newest) -> WaveResult:
        """The groups of a wave, in order, with rewards. Weights are swapped between decode steps, caches kept.

        `newest` must by now be able to give at least `wave.minimum_version`.
        """
        watch = Stopwatch.start()
        self._swap(newest)
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
        share = cost.cpu_seconds / len(groups), cost.wall_seconds / len(groups)
        return WaveResult(tuple(replace(group, cpu_seconds=share[0], wall_seconds=share[1]) for group in groups), cost)

    def evaluate(self, step: int, weights: Weights) -> EvaluationResult:
        """Successes per held-out prompt under exactly `weights`. Its noise depends on the seed and the step only."""
        watch = Stopwatch.start()
        self._evaluation_engine.load_weights(step, weights)
        samples = self._recipe.evaluation.samples
        counts, lengths, finished = [], [], []
        for first in range(0, len(self._held_out), EVALUATION_PROMPTS_AT_ONCE):
            prompts = self._held_out[first : first + EVALUATION_PROMPTS_AT_ONCE]
            seeds = [(2, self._recipe.seed, step, first + i) for i in range(len(prompts))]
            for prompt, responses in zip(prompts, self._sampled(prompts, samples, seeds), strict=True):
                passed = self._task.passed(prompt, responses.tokens, responses.lengths.tolist())
                counts.append(int(passed.sum()))
                lengths.append(float(responses.lengths.mean()))
                finished.append(float(responses.finished.mean()))
        details = {
            "response_length": float(np.mean(lengths)),
            "truncated_share": 1.0 - float(np.mean(finished)),
        }
        return EvaluationResult(step, tuple(counts), samples, details, watch.cost())

    def _sampled(self, prompts: Sequence[Prompt], samples: int, seeds: Sequence[tuple[int, ...]]) -> list[Responses]:
        requests = [
            Request(i, prompt, samples, seed) for i, (prompt, seed) in enumerate(zip(prompts, seeds, strict=True))
        ]
        self._evaluation_engine.submit(requests)
        finished: list[Responses] = []
        while self._evaluation_engine.busy:
            finished += self._evaluation_engine.step()
        return sorted(finished, key=lambda responses: responses.key)

    def _swap(self, newest: Newest) -> None:
        offered = newest(self._engine.version)
        if offered is not None:
            self._engine.load_weights(*offered)

    def _request(self, ordinal: int, index: int) -> Request:
        prompt = self._task.training_prompt(index)
        seed = (1, self._recipe.seed, ordinal)
        return Request(ordinal, prompt, self._recipe.batch.generations_per_prompt, seed)

    def _group(self, request: Request, responses: Responses) -> Group:
        passed = self._task.passed(request.prompt, responses.tokens, responses.lengths.tolist())
        return Group(request.key, request.prompt, responses, rewards=passed.astype(np.float64), passed=passed)
