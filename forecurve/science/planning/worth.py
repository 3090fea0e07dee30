"""What an arm is worth where runs of several seeds make it up: their mean, and what a few seeds leave open of it.

Runs of one arm are neighbours: `sizes`, (A,), says how many each arm has, in the order of the K runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import FloatArray, IntArray
from ..attribution.seeds import SeedSpread


def arm_means(values: FloatArray, sizes: Sequence[int]) -> FloatArray:
    """Of what runs have, (..., K), that of their arms, (..., A).

    >>> arm_means(np.array([1.0, 3.0, 5.0]), [2, 1]).tolist()
    [2.0, 5.0]
    """
    if len(sizes) == values.shape[-1]:
        return values
    return np.asarray(np.add.reduceat(values, firsts(sizes), axis=-1) / np.array(sizes))


def firsts(sizes: Sequence[int]) -> IntArray:
    """The place of each arm's first run among all, (A,)."""
    return np.cumsum([0, *sizes[:-1]], dtype=np.int64)


def arms_of_runs(sizes: Sequence[int]) -> IntArray:
    """The place of each run's arm among all arms, (K,).

    >>> arms_of_runs([2, 1]).tolist()
    [0, 0, 1]
    """
    return np.repeat(np.arange(len(sizes)), sizes)


def p_best(ends: FloatArray) -> FloatArray:
    """P(it ends highest), (A,), from joint draws of ends, (S, A); sums to 1. Those that end alike, at the end of the
    range say, share a draw."""
    highest = ends == ends.max(axis=1, keepdims=True)
    return np.asarray((highest / highest.sum(axis=1, keepdims=True)).mean(axis=0))


def regret_of(worth: FloatArray) -> float:
    """E[highest] - highest expected one, from joint draws, (S, A): what choosing now is expected to lose."""
    return max(float(worth.max(axis=1).mean() - worth.mean(axis=0).max()), 0.0)  # not so but for rounding


def worth_of(
    ends: FloatArray, sizes: Sequence[int], names: Sequence[str], spread: SeedSpread, rng: np.random.Generator
) -> FloatArray:
    """Draws of the arms' means over all seeds that they might have, (S, A), given those of their runs' ends, (S, K).
    They go by the arms' names, so that the order in which arms come has no say."""
    means = arm_means(ends, sizes)
    tau = np.full(len(means), spread.sd)
    if not spread.known:
        tau *= np.sqrt(spread.dof / rng.chisquare(spread.dof, len(means)))
    order = sorted(range(len(names)), key=lambda at: names[at])
    normal = np.empty(means.shape)
    normal[:, order] = rng.standard_normal(means.shape)
    return np.asarray(means + tau[:, None] / np.sqrt(sizes) * normal)
