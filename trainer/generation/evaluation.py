"""Judging weights on held-out prompts: the validation set that curves are fitted to, and further sets kept apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forecurve.recipes import Recipe
from trainer.engines import Engine, interruption_places
from trainer.measuring.clock import Stopwatch
from trainer.streams import Stream
from trainer.tasks import Task
from trainer.types import EvaluationResult, Prompt, Request, Responses

MOST_TASKS = 50
"""Tasks whose pass rates an evaluation tells apart."""


class Evaluator:
    """Samples answers to held-out prompts in an engine that has nothing else to do meanwhile."""

    def __init__(self, recipe: Recipe, task: Task, engine: Engine):
        self._recipe, self._task, self._engine = recipe, task, engine
        self._held_out = task.held_out_prompts(recipe.evaluation.prompts)
        self._downstream = task.downstream_prompts()

    def evaluate(self, step: int, weights: Mapping[str, NDArray[Any]]) -> EvaluationResult:
        """Successes per held-out prompt under exactly `weights`. Its noise depends on the seed and the step only.

        The pass rate of every downstream set is in the details, as `downstream/<name>`, with `.../prompts`; where the
        held-out prompts are of several tasks, that of each as `task/<name>`. `pass@n` is the share of prompts with a
        right answer among their n.
        """
        watch = Stopwatch.start(self._engine.cpu_seconds, self._task.cpu_seconds)
        self._engine.load_weights(step, weights)
        answers = self._answers(self._held_out, (Stream.EVALUATION_NOISE, self._recipe.seed, step))
        details = {
            "response_length": float(np.mean([responses.lengths.mean() for responses in answers])),
            "truncated_share": 1.0 - float(np.mean([responses.finished.mean() for responses in answers])),
            "interrupted_share": float(np.mean([responses.interrupted.mean() for responses in answers])),
        }
        for place, (name, prompts) in enumerate(self._downstream.items()):
            seed = (Stream.DOWNSTREAM_NOISE, self._recipe.seed, step, place)
            counts = self._counts(prompts, self._answers(prompts, seed))
            details[f"downstream/{name}"] = sum(counts) / (len(counts) * self._recipe.evaluation.samples)
            details[f"downstream/{name}/prompts"] = float(len(counts))
        counts = self._counts(self._held_out, answers)
        details[f"pass@{self._recipe.evaluation.samples}"] = float(np.mean([count > 0 for count in counts]))
        details |= self._by_task(counts)
        return EvaluationResult(step, counts, self._recipe.evaluation.samples, details, watch.cost())

    def _by_task(self, counts: Sequence[int]) -> dict[str, float]:
        passed: dict[str, list[int]] = {}
        for prompt, count in zip(self._held_out, counts, strict=True):
            passed.setdefault(prompt.task, []).append(count)
        if not 2 <= len(passed) <= MOST_TASKS:
            return {}
        samples = self._recipe.evaluation.samples
        return {f"task/{task}": sum(of) / (len(of) * samples) for task, of in sorted(passed.items())}

    def _counts(self, prompts: Sequence[Prompt], answers: Sequence[Responses]) -> tuple[int, ...]:
        pairs = zip(prompts, answers, strict=True)
        return tuple(int(self._task.passed(p, a.tokens, a.lengths.tolist()).sum()) for p, a in pairs)

    def _answers(self, prompts: Sequence[Prompt], seed: tuple[int, ...]) -> list[Responses]:
        samples = self._recipe.evaluation.samples
        seeds = [(*seed, place) for place in range(len(prompts))]
        self._engine.submit(
            [
                Request(place, prompt, samples, own, interruption_places(self._recipe, own, samples))
                for place, (prompt, own) in enumerate(zip(prompts, seeds, strict=True))
            ]
        )
        finished: list[Responses] = []
        while self._engine.busy:
            finished += self._engine.step()
        return sorted(finished, key=lambda responses: responses.key)
