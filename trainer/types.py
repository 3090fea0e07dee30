"""Values that cross a boundary between prompts, generators, the controller and the learner.

All are frozen and hold plain numbers and numpy arrays, so that they travel between processes and are
written to a checkpoint without torch. Letters in shapes: P prompts, G generations of one prompt,
S prompt tokens, T response tokens (padded), W parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question with its known answer. `tokens` has shape [S], not padded to the length of other prompts.

    `task` names the part of a mixture that it comes from, `difficulty` is what that part states (larger is harder),
    `index` is its place among the task's training prompts (-1: a held-out one).
    """

    text: str
    answer: str
    tokens: NDArray[np.int64]
    task: str = ""
    difficulty: float = 0.0
    index: int = -1


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt to sample `samples` responses for.

    `seed` alone decides the random numbers of its responses, whatever else is in the same batch. `interrupt_at` [G]:
    after so many tokens without an end the interruption phrase is put in (§3.3, A.10); None: never. `budget`: most
    tokens of a response, where that is less than the engine's `max_tokens`.
    """

    key: int
    prompt: Prompt
    samples: int
    seed: tuple[int, ...]
    interrupt_at: NDArray[np.int64] | None = None
    budget: int | None = None


@dataclass(frozen=True, slots=True)
class Responses:
    """What an engine returns for one request.

    `tokens`, `logprobs`, `versions` and `sampled` have shape [G, T], right-padded (0 beyond each row's length);
    `lengths`, `finished` and `interrupted` have shape [G]. `logprobs` are the generator's own, of the
    temperature-scaled distribution it sampled from. `versions` says which weight version produced each token.
    `sampled` is False on tokens that the policy did not choose (an interruption phrase) and beyond the length:
    those are not trained on, their logprob and version are 0. A row is `finished` when it ended itself (its last
    token is the end token), else it was cut at the budget; `interrupted` when the phrase was put into it.
    """

    key: int
    tokens: NDArray[np.int64]
    logprobs: NDArray[np.float32]
    versions: NDArray[np.int32]
    lengths: NDArray[np.int64]
    finished: NDArray[np.bool_]
    sampled: NDArray[np.bool_]
    interrupted: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Group:
    """A prompt's G responses with their rewards: the unit that is admitted, trained on, or dropped.

    `ordinal` is the prompt's place in the run's order, counted from 0. `rewards` [G] is what is trained on (length
    penalty included), `passed` [G] what the verifier said and pass rates count. `cpu_seconds` and `wall_seconds`
    are its share of the time its wave took to generate.
    """

    ordinal: int
    prompt: Prompt
    responses: Responses
    rewards: NDArray[np.float64]
    passed: NDArray[np.bool_]
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0

    @property
    def oldest_version(self) -> int:
        """Weight version of the group's oldest sampled token."""
        return int(self.responses.versions[self.responses.sampled].min())

    @property
    def token_count(self) -> int:
        """Sampled tokens of all G rows."""
        return int(self.responses.sampled.sum())


@dataclass(frozen=True, slots=True)
class Wave:
    """Groups that start generating together, none before the generator holds `minimum_version`.

    `items` are pairs of a group's ordinal and the index of its prompt among the task's training prompts.
    """

    items: tuple[tuple[int, int], ...]
    minimum_version: int

    @property
    def ordinals(self) -> tuple[int, ...]:
        """The groups' places in the run's order."""
        return tuple(ordinal for ordinal, _ in self.items)


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
    """Time of one piece of work: `cpu_seconds` of the working thread and of processes that work for it,
    `wall_seconds` of the clock."""

    cpu_seconds: float
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class WaveResult:
    """Finished groups of a wave, with what they cost together.

    Of the generator's wall time: `paused_seconds` of it went into taking new weights, and `waited_seconds` went by
    without work before this wave. `verifier` counts what went wrong in verifiers meanwhile.
    """

    groups: tuple[Group, ...]
    cost: Cost
    paused_seconds: float = 0.0
    waited_seconds: float = 0.0
    verifier: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a person should know and that changes no figure."""

    reason: str


@dataclass(frozen=True, slots=True)
class GeneratorLost:
    """A generator died, or was killed because it stalled, and was replaced; its work was started again. `cost` is what
    the lost work had taken."""

    reason: str
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
class Memory:
    """The most that a process held at once, in bytes; and of how much, where that is its own (a GPU's)."""

    peak: int
    total: int | None = None


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
    memory: Memory | None = None


@dataclass(frozen=True, slots=True)
class LearnerState:
    """Everything the learner needs to go on as if it had never stopped."""

    tensors: Mapping[str, NDArray[Any]]
    counters: Mapping[str, int]
