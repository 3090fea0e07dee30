"""Curves of more evaluations than a fit needs: neighbours averaged.

Outliers are looked for before: among means of several evaluations a stretch would have lost its sharp sides, and one
bad evaluation have spoiled its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray
from .outliers import outlier_variance

MOST_FITTED = 400  # beyond, neighbouring evaluations are averaged: the curve is smooth, the cost is not
_WIDEST_BLOCK = 1.1  # last compute of a block of neighbours over its first


@dataclass(frozen=True, eq=False)
class Averaged:
    """Evaluations, or means of neighbours, rewards in [0, 1]; every array but the last of shape (N,).

    Attributes:
        compute, reward, variance: of each; the nominal variance.
        extra: further variance, where there are none but outliers in it.
        begins: which evaluation is its first.
        outliers: which evaluations are outliers, (M,).
    """

    compute: FloatArray
    reward: FloatArray
    variance: FloatArray
    extra: FloatArray
    begins: IntArray
    outliers: IntArray


def averaged(compute: FloatArray, reward: FloatArray, variance: FloatArray) -> Averaged:
    """Neighbours averaged, without the outliers among them, where there are more than a fit needs; (N,) each."""
    extra = outlier_variance(reward, variance)
    outliers = np.flatnonzero(extra)
    if len(compute) <= MOST_FITTED:
        return Averaged(compute, reward, variance, extra, np.arange(len(compute)), outliers)
    begins = _block_edges(compute, head=1 if compute[0] == 0 else 0)

    def total(values: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(values, begins))

    good = (extra == 0).astype(np.float64)
    spoiled = total(good) == 0
    weight = np.where(np.repeat(spoiled, np.diff(begins, append=len(compute))), 1.0, good)
    size = total(weight)
    means = (total(weight * values) / size for values in (compute, reward, variance, weight * extra))
    middle, mean, spread, further = means
    return Averaged(middle, mean, spread / size, further, begins, outliers)


def _block_edges(compute: FloatArray, head: int) -> IntArray:
    """Where each block of neighbours begins: equal numbers of them, but fewer where a block would span so much compute
    that the curve bends within it, as the first ones of a long run do. The start, where `head` is 1, stays by itself.
    """
    equal = np.linspace(head, len(compute), MOST_FITTED - head + 1).astype(int)
    first, last = equal[:-1], equal[1:] - 1
    wide = np.flatnonzero(compute[last] > _WIDEST_BLOCK * compute[first])
    grid = np.arange(0.0, np.log(compute[-1] / compute[head]), np.log(_WIDEST_BLOCK))
    finer = np.searchsorted(compute, compute[head] * np.exp(grid))
    inside = np.isin(np.searchsorted(first, finer, side="right") - 1, wide)
    return np.unique(np.concatenate([np.arange(head), first, finer[inside]]))
