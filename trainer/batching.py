"""From groups to what the learner runs: filter, advantages and token weights of the whole optimiser batch.

All normalisation happens here, over the full batch, before anything is cut into micro-batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forecurve.recipes.schema import Algorithm
from trainer.advantages import group_centre, has_variance, scaled
from trainer.losses import token_weights
from trainer.types import Group


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """The rows of one optimiser step: N = kept prompts * G responses, padded to T tokens.

    `prompts` [P, S], `prompt_of_row` [N]; `tokens` and `generator_logprobs` [N, T] (0 beyond `lengths` [N]);
    `advantages` and `weights` [N] (`weights` is what each token of the row weighs).
    """

    prompts: NDArray[np.int64]
    prompt_of_row: NDArray[np.int64]
    tokens: NDArray[np.int64]
    generator_logprobs: NDArray[np.float32]
    lengths: NDArray[np.int64]
    advantages: NDArray[np.float32]
    weights: NDArray[np.float32]

    @property
    def token_count(self) -> int:
        """Response tokens that are trained on."""
        return int(self.lengths.sum())


def kept_groups(groups: Sequence[Group], zero_variance_filter: str) -> list[Group]:
    """The groups trained on: all, or (`shrink`) those with 0 < pass rate < 1. Dropped ones are not replaced."""
    if zero_variance_filter == "off":
        return list(groups)
    keep = has_variance(np.stack([group.rewards for group in groups]))
    return [group for group, kept in zip(groups, keep, strict=True) if kept]


def training_batch(groups: Sequence[Group], algorithm: Algorithm) -> TrainingBatch | None:
    """The batch of one step; None when the filter leaves nothing."""
    groups = kept_groups(groups, algorithm.zero_variance_filter)
    if not groups:
        return None
    lengths = np.stack([group.responses.lengths for group in groups])
    rewards = np.stack([group.rewards for group in groups])
    longest = int(lengths.max())
    return TrainingBatch(
        prompts=np.stack([group.prompt.tokens for group in groups]),
        prompt_of_row=np.repeat(np.arange(len(groups)), lengths.shape[1]),
        tokens=np.concatenate([_padded(group.responses.tokens, longest) for group in groups]),
        generator_logprobs=np.concatenate([_padded(group.responses.logprobs, longest) for group in groups]),
        lengths=lengths.reshape(-1),
        advantages=scaled(group_centre(rewards), algorithm.advantage_scale).reshape(-1).astype(np.float32),
        weights=token_weights(lengths, algorithm.aggregation).reshape(-1).astype(np.float32),
    )


def length_buckets(lengths: NDArray[np.int64], rows_per_bucket: int) -> list[NDArray[np.int64]]:
    """Row indices by rising length, cut into buckets: each is padded only to its own longest row."""
    order = np.argsort(lengths, kind="stable")
    return [order[i : i + rows_per_bucket] for i in range(0, len(order), rows_per_bucket)]


def _padded(rows: NDArray[Any], length: int) -> NDArray[Any]:
    """Rows [G, T] with zeros up to `length`; nothing but padding is ever cut."""
    return np.pad(rows[:, :length], ((0, 0), (0, max(0, length - rows.shape[1]))))
