"""Values that cross a boundary between prompts, generators, the controller and the learner.

All are frozen and hold plain numbers and numpy arrays, so that they travel between processes and are
written to a checkpoint without torch. Letters in shapes: P prompts, G generations of one prompt,
S prompt tokens, T response tokens (padded), W parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question with its known answer. `tokens` has shape [S]."""

    text: str
    answer: str
    tokens: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt to sample `samples` responses for.

    `seed` alone decides the random numbers of its responses, whatever else is in the same batch.
    """

    key: int
    prompt: Prompt
    samples: int
    seed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Responses:
    """What an engine returns for one request.

    `tokens`, `logprobs` and `versions` have shape [G, T], right-padded (0 beyond each row's length);
    `lengths` and `finished` have shape [G]. `logprobs` are the generator's own, of the temperature-scaled
    distribution it sampled from. `versions` says which weight version produced each token. A row is
    `finished` when it ended itself (its last token is the end token), else it was cut at the budget.
    """

    key: int
    tokens: NDArray[np.int64]
    logprobs: NDArray[np.float32]
    versions: NDArray[np.int32]
    lengths: NDArray[np.int64]
    finished: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Group:
    """A prompt's G responses with their rewards: the unit that is admitted, trained on, or dropped.

    `ordinal` is the prompt's place in the run's order, counted from 0. `cpu_seconds` and `wall_seconds` are
    its share of the time its wave took to generate.
    """

    ordinal: int
    prompt: Prompt
    responses: Responses
    rewards: NDArray[np.float64]
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0

    @property
    def oldest_version(self) -> int:
        """Weight version of the group's oldest token."""
        return min(int(row[0]) for row in self.responses.versions)

    @property
    def token_count(self) -> int:
        """Response tokens of all G rows."""
        return int(self.responses.lengths.sum())


@dataclass(frozen=True, slots=True)
class Wave:
    """Groups that start generating together, none before the generator holds `minimum_version`."""

    ordinals: tuple[int, ...]
    minimum_version: int


@dataclass(frozen=True, slots=True)
class WeightVersion:
    """A named version of the policy's weights; version v is the policy after v optimiser steps.

    `source` is whatever the workers' store understands: a mapping of arrays in-process, an object
    reference under Ray. Readers pull it when they want it.
    """

    version: int
    source: Any


@dataclass(frozen=True, slots=True)
class Cost:
    """Time of one piece of work: `cpu_seconds` of the working thread, `wall_seconds` of the clock."""

    cpu_seconds: float
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class WaveResult:
    """Finished groups of a wave, with what they cost together."""

    groups: tuple[Group, ...]
    cost: Cost


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """Successes out of `samples` for each held-out prompt, in the set's fixed order, under the weights of `step`."""

    step: int
    counts: tuple[int, ...]
    samples: int
    details: Mapping[str, float]
    cost: Cost


@dataclass(frozen=True, slots=True)
class StepResult:
    """One optimiser step: its metrics and the weights that came out of it.

    `version` counts batches consumed. `applied` is False when the optimiser did not move the weights: every
    group was dropped, or the loss or gradient was not finite (`not_finite`).
    """

    version: int
    metrics: Mapping[str, float]
    weights: WeightVersion
    applied: bool
    not_finite: bool
    cost: Cost


@dataclass(frozen=True, slots=True)
class LearnerState:
    """Everything the learner needs to go on as if it had never stopped."""

    tensors: Mapping[str, NDArray[Any]]
    counters: Mapping[str, int]
