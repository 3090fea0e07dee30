"""From groups to what the learner runs: filter, advantages and token weights of the whole optimiser batch.

All normalisation happens here, over the full batch, before anything is cut into micro-batches or dealt out to ranks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forecurve.recipes.schema import Algorithm
from trainer.algorithm.advantages import group_centre, has_variance, scaled
from trainer.algorithm.losses import token_weights
from trainer.types import Group


@dataclass(frozen=True, slots=True)
class Alike:
    """Rows [M] of a batch that run as one of some others, and the place [M] of that one among those others."""

    rows: NDArray[np.int64]
    places: NDArray[np.int64]


@dataclass(frozen=True)
class TrainingBatch:
    """The rows of one optimiser step: N = kept prompts * G responses, padded to T tokens.

    `prompts` are P arrays of their own length, `prompt_of_row` [N]. `tokens` and `generator_logprobs` [N, T] are 0
    beyond `lengths` [N]. `trained` [N, T] is True on the tokens that count: sampled by the policy, with a generator
    log-prob that is finite (`generator_logprobs` is 0 on all others). `advantages` and `weights` [N]: `weights` is
    what each trained token of the row weighs. `not_finite_tokens` were sampled and left out.
    """

    prompts: tuple[NDArray[np.int64], ...]
    prompt_of_row: NDArray[np.int64]
    tokens: NDArray[np.int64]
    generator_logprobs: NDArray[np.float32]
    trained: NDArray[np.bool_]
    lengths: NDArray[np.int64]
    advantages: NDArray[np.float32]
    weights: NDArray[np.float32]
    not_finite_tokens: int

    @property
    def token_count(self) -> int:
        """Response tokens that are trained on."""
        return int(self.trained.sum())

    @cached_property
    def runs_as(self) -> NDArray[np.int64]:
        """[N] the first row with the same prompt and the same tokens: the policy runs that one for all of them."""
        first: dict[tuple[int, bytes], int] = {}
        rows = zip(self.prompt_of_row.tolist(), self.tokens, self.lengths.tolist(), strict=True)
        # By digest: long responses would otherwise be held a second time.
        keys = ((prompt, hashlib.blake2b(tokens[:length]).digest()) for prompt, tokens, length in rows)
        return np.array([first.setdefault(key, row) for row, key in enumerate(keys)], dtype=np.int64)

    @property
    def distinct(self) -> NDArray[np.int64]:
        """Rows that the policy runs."""
        return np.unique(self.runs_as)

    def alike(self, rows: NDArray[np.int64]) -> Alike:
        """All rows that run as one of `rows`, in the order of `rows`."""
        place = np.full(len(self.lengths), -1)
        place[rows] = np.arange(len(rows))
        places = place[self.runs_as]
        order = np.argsort(places, kind="stable")[np.count_nonzero(places < 0) :]
        return Alike(order, places[order])


def kept_groups(groups: Sequence[Group], zero_variance_filter: str) -> list[Group]:
    """The groups trained on: all (`off`), or those whose rewards differ.

    Dropped ones are not replaced here; `refill` has replaced them before the batch was made.
    """
    if zero_variance_filter == "off":
        return list(groups)
    keep = has_variance(np.stack([group.rewards for group in groups]))
    return [group for group, kept in zip(groups, keep, strict=True) if kept]


def training_batch(groups: Sequence[Group], algorithm: Algorithm) -> TrainingBatch | None:
    """The batch of one step; None when the filter leaves nothing, or no token that could be trained on."""
    groups = kept_groups(groups, algorithm.zero_variance_filter)
    if not groups:
        return None
    longest = max(int(group.responses.lengths.max()) for group in groups)
    sampled = np.concatenate([padded(group.responses.sampled, longest) for group in groups])
    logprobs = np.concatenate([padded(group.responses.logprobs, longest) for group in groups])
    trained = sampled & np.isfinite(logprobs)
    if not trained.any():
        return None
    rewards = np.stack([group.rewards for group in groups])
    counts = trained.sum(axis=1).reshape(rewards.shape)
    return TrainingBatch(
        prompts=tuple(group.prompt.tokens for group in groups),
        prompt_of_row=np.repeat(np.arange(len(groups)), rewards.shape[1]),
        tokens=np.concatenate([padded(group.responses.tokens, longest) for group in groups]),
        generator_logprobs=np.where(trained, logprobs, 0.0).astype(np.float32),
        trained=trained,
        lengths=np.concatenate([group.responses.lengths for group in groups]),
        advantages=scaled(group_centre(rewards), algorithm.advantage_scale).reshape(-1).astype(np.float32),
        weights=token_weights(counts, algorithm.aggregation).reshape(-1).astype(np.float32),
        not_finite_tokens=int(sampled.sum() - trained.sum()),
    )


def padded(rows: NDArray[Any], length: int) -> NDArray[Any]:
    """Rows [G, T] cut or with zeros up to `length`; nothing but padding is ever cut."""
    return np.pad(rows[:, :length], ((0, 0), (0, max(0, length - rows.shape[1]))))
