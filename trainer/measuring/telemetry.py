"""Times between steps: who worked, who waited, and what swaps and checkpoints took. One window a step."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence

from trainer.algorithm.batching import kept_groups
from trainer.curriculum.buffer import Batch
from trainer.measuring.ledger import Ledger
from trainer.measuring.metrics import batch_metrics, generation_cost, memory_metrics, rate, speed_metrics
from trainer.types import EvaluationResult, GeneratorLost, Group, StepResult, WaveResult


class Telemetry:
    """Collects what comes back from workers until a step is done, and says it as metrics of that step.

    `zero_variance_filter` is the recipe's: what it drops is not trained on. `clock` gives wall seconds.
    """

    def __init__(self, ledger: Ledger, zero_variance_filter: str, clock: Callable[[], float] = time.perf_counter):
        self._ledger, self._filter, self._clock = ledger, zero_variance_filter, clock
        self._window: defaultdict[str, float] = defaultdict(float)
        self.verifier: defaultdict[str, float] = defaultdict(float)
        """What verifiers counted so far, `verifier/...`, earlier attempts included."""
        self._lost = 0
        self.begin()

    def begin(self) -> None:
        """From here on time counts: the first step begins."""
        self._step_ended = self._learner_free_since = self._clock()
        self._waits: deque[float] = deque()  # of the learner, for each batch that it has
        self.step_seconds, self.step_compute = math.inf, math.inf
        """What the last step took."""

    def wave(self, result: WaveResult) -> None:
        """A generator brought a wave."""
        self._window["generator"] += result.cost.wall_seconds
        self._window["paused"] += result.paused_seconds
        self._window["generator_waited"] += result.waited_seconds
        for name, count in result.verifier.items():
            self.verifier[name] += count

    def evaluation(self, result: EvaluationResult) -> None:
        """A generator brought an evaluation."""
        self._window["evaluation"] += result.cost.wall_seconds
        self._ledger.charge("evaluation", result.cost)

    def lost(self, loss: GeneratorLost) -> None:
        """A generator was lost, and with it some work."""
        self._lost += 1
        self._ledger.charge("waste", loss.cost)

    def batch_taken(self) -> None:
        """The learner gets its next batch, before it is done with the one it has perhaps."""
        self._waits.append(0.0 if self._waits else self._clock() - self._learner_free_since)

    def checkpointed(self, seconds: float) -> None:
        """A checkpoint took so long."""
        self._window["checkpoint"] += seconds

    def reached(self, groups: Sequence[Group]) -> float:
        """Compute if the step ended now, with nothing but the generation of `groups`."""
        return self._ledger.reached(generation_cost(groups), self._clock() - self._step_ended)

    def step(self, result: StepResult, batch: Batch) -> dict[str, float]:
        """A step is done: charge it, and all there is to say about it."""
        now = self._clock()
        step_seconds, self._step_ended, self._learner_free_since = now - self._step_ended, now, now
        before = self._ledger.compute
        sampled, trained = batch.all, kept_groups(batch.groups, self._filter)
        self._ledger.charge("generator", generation_cost(sampled))
        self._ledger.charge("learner", result.cost)
        self._ledger.close_step(step_seconds, sum(group.token_count for group in sampled))
        self.step_seconds, self.step_compute = step_seconds, self._ledger.compute - before
        metrics = batch_metrics(batch, trained) | dict(result.metrics)
        metrics |= speed_metrics(sampled, trained, result.cost, step_seconds)
        metrics |= self._times(step_seconds)
        metrics |= memory_metrics(result.memory)
        metrics |= dict(self.verifier)
        metrics["generation/lost_generators"] = float(self._lost)
        self._window.clear()
        return metrics | self._ledger.metrics()

    def _times(self, step_seconds: float) -> dict[str, float]:
        window, waited = self._window, self._waits.popleft()
        present = window["generator"] + window["evaluation"] + window["generator_waited"]
        return {
            "time/wait_for_batch": waited,
            "time/learner_wait_share": min(1.0, rate(waited, step_seconds)),
            "time/generator_busy": window["generator"],
            "time/generator_waited": window["generator_waited"],
            "time/generator_wait_share": rate(window["generator_waited"], present),
            "time/swap_pause": window["paused"],
            "time/swap_pause_share": rate(window["paused"], present),
            "time/checkpoint": window["checkpoint"],
        }
