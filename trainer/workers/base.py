"""What the controller asks of workers: start work, be told when it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from trainer.types import (
    EvaluationResult,
    GeneratorLost,
    Group,
    LearnerState,
    Notice,
    StepResult,
    Wave,
    WaveResult,
    WeightVersion,
)

Result = WaveResult | EvaluationResult | StepResult | GeneratorLost | Notice


@dataclass(frozen=True, slots=True)
class Ticket:
    """Work that was started and has not come back (`generator`: none; news of a generator)."""

    number: int
    kind: Literal["wave", "evaluation", "step", "generator"]


class Workers(Protocol):
    """Generators and a learner. `start_*` return at once; results come out of `wait`, each once."""

    generators: int
    waves_in_flight: int
    """Waves worth having started at any time: enough that no generator waits for the controller."""
    steps_in_flight: int
    """Steps that may have been started and have not come back: 2 where the second waits while the first runs."""

    def initial_weights(self) -> WeightVersion:
        """The weights that the learner now holds."""

    def offer(self, weights: WeightVersion) -> None:
        """Tell every generator that these weights exist; it takes them between two decode steps."""

    def start_wave(self, wave: Wave) -> Ticket:
        """Generate a wave; the newest offered weights are at least its minimum version."""

    def start_evaluation(self, weights: WeightVersion) -> Ticket:
        """Judge exactly these weights on the held-out prompts."""

    def start_step(self, groups: Sequence[Group]) -> Ticket:
        """One optimiser step on these groups, after those that were started before."""

    def wait(self, timeout: float) -> list[tuple[Ticket, Result]]:
        """What has finished, after at most `timeout` seconds of waiting.

        Raises:
            WorkerLost: the learner died or no longer answers, or generators are lost faster than they may be replaced.
        """

    def arrays(self, weights: WeightVersion) -> Mapping[str, NDArray[Any]]:
        """The arrays of these weights, by parameter name."""

    def learner_state(self) -> LearnerState:
        """The learner's state now; no step may be running."""

    def load_learner_state(self, state: LearnerState) -> None:
        """Put the learner back to `state`; before the first step."""

    def close(self) -> None:
        """End all workers, whatever they are doing."""
