"""The small fixed overview that every step reports. Names are families: train, policy, staleness, generation, time,
throughput, ledger."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainer.advantages import has_variance
from trainer.types import Cost, Group


def group_metrics(groups: Sequence[Group], batch: int) -> dict[str, float]:
    """What one batch (number `batch`, counted from 0) of groups says, before any filter.

    Staleness is in weight versions: the learner's minus that of the token, over all tokens.
    """
    rewards = np.stack([group.rewards for group in groups])
    passed = np.stack([group.passed for group in groups])
    lengths = np.concatenate([group.responses.lengths for group in groups])
    finished = np.concatenate([group.responses.finished for group in groups])
    ages = np.concatenate([batch - _versions(group) for group in groups])
    return {
        "train/reward": float(rewards.mean()),
        "train/pass_rate_all": float(passed.mean()),
        "train/solved_prompts_share": float(passed.all(axis=1).mean()),
        "train/zero_variance_share": float(1.0 - has_variance(rewards).mean()),
        "staleness/mean": float(ages.mean()),
        "staleness/max": float(ages.max()),
        "generation/response_length": float(lengths.mean()),
        "generation/truncated_share": float(1.0 - finished.mean()),
    }


def generation_cost(groups: Sequence[Group]) -> Cost:
    """What generating these groups took."""
    return Cost(sum(group.cpu_seconds for group in groups), sum(group.wall_seconds for group in groups))


def speed_metrics(groups: Sequence[Group], generation: Cost, learning: Cost, step_seconds: float) -> dict[str, float]:
    """Times of one step and what they amount to: per wall second end to end, per CPU second of each role."""
    tokens = float(sum(group.token_count for group in groups))
    completions = float(sum(len(group.rewards) for group in groups))
    return {
        "time/step": step_seconds,
        "time/generation": generation.wall_seconds,
        "time/learning": learning.wall_seconds,
        "throughput/completions_per_second": _rate(completions, step_seconds),
        "throughput/tokens_per_second": _rate(tokens, step_seconds),
        "throughput/generation_tokens_per_cpu_second": _rate(tokens, generation.cpu_seconds),
        "throughput/learning_tokens_per_cpu_second": _rate(tokens, learning.cpu_seconds),
    }


def _versions(group: Group) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return group.responses.versions[group.responses.sampled]


def _rate(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0
