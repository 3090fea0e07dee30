"""Which weights are judged: the first, those of the cadence and the last; and telling of them by rising step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainer.measuring.ledger import Ledger
from trainer.records.reporting import Reporter
from trainer.records.state import RunState
from trainer.types import EvaluationResult, WeightVersion
from trainer.workers import Workers


@dataclass(frozen=True, slots=True)
class Judging:
    """Weights whose evaluation has not come back, and what had been spent on the way to them."""

    compute: float
    tokens: int
    weights: WeightVersion


class Evaluations:
    """Those of one run: started by the workers, told to the reporter.

    Args:
        every_steps: the cadence.
        workers: who judges.
        reporter: whom to tell.
        ledger: says what had been spent.
    """

    def __init__(self, every_steps: int, workers: Workers, reporter: Reporter, ledger: Ledger):
        self._every_steps, self._workers, self._reporter, self._ledger = every_steps, workers, reporter, ledger
        self._first = 0  # step the run began at
        self._started = -1  # newest step whose evaluation was started
        self._of_cadence = -1  # newest of those that a run which does not end there judges too
        self._under_way: dict[int, Judging] = {}  # by step
        self._judged: dict[int, EvaluationResult] = {}  # came back before an earlier one did

    @property
    def under_way(self) -> bool:
        """Whether one has not come back."""
        return bool(self._under_way)

    def resume(self, state: RunState) -> None:
        """Go on from a checkpoint."""
        self._first, self._of_cadence = state.counters["first"], state.counters["evaluated"]
        self._started = self._of_cadence
        for step, (compute, tokens, weights) in state.evaluations.items():
            self._under_way[step] = Judging(compute, tokens, WeightVersion(step, weights))

    def fork(self, step: int) -> None:
        """Begin at another run's step."""
        self._first = step

    def begin(self, weights: WeightVersion) -> None:
        """Judge what the run starts from, or what was being judged when its checkpoint was written."""
        for step, judging in sorted(self._under_way.items()):
            known = weights if judging.weights.source is None else judging.weights
            self._under_way[step] = replace(judging, weights=known)
            self._workers.start_evaluation(known)
        if self._started < 0:
            self.judge(weights)

    def judge_on_cadence(self, weights: WeightVersion) -> None:
        """Judge them if it is their turn."""
        if self._on_cadence(weights.version):
            self.judge(weights)

    def judge(self, weights: WeightVersion) -> None:
        """Judge them, unless they have been."""
        if self._started >= weights.version:
            return
        self._started = weights.version
        if self._on_cadence(weights.version):
            self._of_cadence = weights.version
        self._under_way[weights.version] = Judging(self._ledger.compute, self._ledger.tokens, weights)
        self._workers.start_evaluation(weights)

    def report(self, result: EvaluationResult) -> None:
        """Tell of evaluations by rising step, whichever generator was the faster."""
        self._judged[result.step] = result
        while self._under_way and (step := min(self._under_way)) in self._judged:
            judging, judged = self._under_way.pop(step), self._judged.pop(step)
            told = replace(judged, details={**judged.details, "tokens": float(judging.tokens)})
            self._reporter.evaluation(told, judging.compute)

    def counters(self) -> dict[str, int]:
        """What a checkpoint keeps beside `state`."""
        return {"first": self._first, "evaluated": self._of_cadence}

    def state(self, at: int) -> dict[int, tuple[float, int, Mapping[str, Any] | None]]:
        """Those under way, as `RunState` has them; weights of step `at`, the learner's own, it holds anyway."""
        return {
            step: (judging.compute, judging.tokens, None if step == at else self._workers.arrays(judging.weights))
            for step, judging in self._under_way.items()
            if self._on_cadence(step)  # what is judged because the run ends here is not, once it goes on
        }

    def _on_cadence(self, step: int) -> bool:
        """Whether a run that is not ended there judges `step`."""
        return step == self._first or step % self._every_steps == 0
