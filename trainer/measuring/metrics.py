"""What one step says about its groups, its times and its speed. Every name is explained in `metric_names`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.algorithm.advantages import has_variance
from trainer.curriculum.buffer import Batch
from trainer.types import Cost, Group, Memory

GIB = 2**30


def batch_metrics(batch: Batch, trained: Sequence[Group]) -> dict[str, float]:
    """What a batch says: all that was sampled for it, dropped groups included, and how old is what is `trained` on."""
    groups = batch.all
    return (
        _reward_metrics(groups, len(batch.dropped)) | staleness_metrics(trained, batch.number) | _length_metrics(groups)
    )


def staleness_metrics(groups: Sequence[Group], batch: int) -> dict[str, float]:
    """Age of the sampled tokens of batch number `batch` in weight versions, and where it comes from; nothing of none.

    In flight: the group's newest token's version minus the token's own. In queue: the learner's version minus that
    of the group's newest token.
    """
    if not groups:
        return {}
    flights, queues = [], []
    for group in groups:
        versions = _versions(group)
        newest = int(versions.max())
        flights.append(newest - versions)
        queues.append(np.full(len(versions), batch - newest))
    flight, queue = np.concatenate(flights), np.concatenate(queues)
    ages = flight + queue
    return {
        "staleness/mean": float(ages.mean()),
        "staleness/max": float(ages.max()),
        "staleness/in_flight_mean": float(flight.mean()),
        "staleness/in_flight_max": float(flight.max()),
        "staleness/in_queue_mean": float(queue.mean()),
        "staleness/in_queue_max": float(queue.max()),
    }


def generation_cost(groups: Sequence[Group]) -> Cost:
    """What generating these groups took."""
    return Cost(sum(group.cpu_seconds for group in groups), sum(group.wall_seconds for group in groups))


def speed_metrics(
    sampled: Sequence[Group], trained: Sequence[Group], learning: Cost, step_seconds: float
) -> dict[str, float]:
    """Times of one step and what they amount to: what was `trained` on per wall second end to end and per CPU second of
    learning, all that was `sampled` for it per CPU second of generating."""
    generation = generation_cost(sampled)
    tokens, generated = (float(sum(group.token_count for group in groups)) for groups in (trained, sampled))
    completions = float(sum(len(group.rewards) for group in trained))
    return {
        "time/step": step_seconds,
        "time/generation": generation.wall_seconds,
        "time/learning": learning.wall_seconds,
        "throughput/completions_per_second": rate(completions, step_seconds),
        "throughput/tokens_per_second": rate(tokens, step_seconds),
        "throughput/generation_tokens_per_second": rate(generated, generation.wall_seconds),
        "throughput/learning_tokens_per_second": rate(tokens, learning.wall_seconds),
        "throughput/generation_tokens_per_cpu_second": rate(generated, generation.cpu_seconds),
        "throughput/learning_tokens_per_cpu_second": rate(tokens, learning.cpu_seconds),
    }


def memory_metrics(memory: Memory | None) -> dict[str, float]:
    """The most that a rank of the learner held in a step; nothing where that is not known."""
    if memory is None:
        return {}
    share = {} if memory.total is None else {"memory/learner_peak_share": memory.peak / memory.total}
    return {"memory/learner_peak": memory.peak / GIB} | share


def rate(amount: float, seconds: float) -> float:
    """`amount` per second; 0 of no time."""
    return amount / seconds if seconds > 0 else 0.0


def _reward_metrics(groups: Sequence[Group], dropped: int) -> dict[str, float]:
    rewards = np.stack([group.rewards for group in groups])
    passed = np.stack([group.passed for group in groups])
    varied = has_variance(rewards)
    generation = generation_cost(groups).wall_seconds
    idle = generation_cost([group for group, keep in zip(groups, varied, strict=True) if not keep]).wall_seconds
    kept = {"train/pass_rate_kept": float(passed[varied].mean())} if varied.any() else {}
    return kept | {
        "train/reward": float(rewards.mean()),
        "train/pass_rate_all": float(passed.mean()),
        "train/solved_prompts_share": float(passed.all(axis=1).mean()),
        "train/zero_variance_share": float(1.0 - varied.mean()),
        "filter/all_right_share": float((passed.all(axis=1) & ~varied).mean()),
        "filter/all_wrong_share": float((~passed.any(axis=1) & ~varied).mean()),
        "filter/refilled_groups": float(dropped),
        "time/zero_variance_generation_share": rate(idle, generation),
    }


def _length_metrics(groups: Sequence[Group]) -> dict[str, float]:
    lengths = np.concatenate([group.responses.lengths for group in groups])
    finished = np.concatenate([group.responses.finished for group in groups])
    interrupted = np.concatenate([group.responses.interrupted for group in groups])
    passed = np.concatenate([group.passed for group in groups])
    parts = {"finished": finished, "right": passed, "wrong": ~passed}
    return {
        "generation/response_length": float(lengths.mean()),
        "generation/response_length_min": float(lengths.min()),
        "generation/response_length_max": float(lengths.max()),
        "generation/truncated_share": float(1.0 - finished.mean()),
        "generation/interrupted_share": float(interrupted.mean()),
    } | {
        f"generation/response_length_{name}": float(lengths[rows].mean()) for name, rows in parts.items() if rows.any()
    }


def _versions(group: Group) -> NDArray[Any]:
    return group.responses.versions[group.responses.sampled]
