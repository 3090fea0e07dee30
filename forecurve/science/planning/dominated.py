"""Which arms of a sweep can be dropped: by themselves, and all of them together."""

from __future__ import annotations

import numpy as np

from ..arrays import BoolArray, FloatArray

DOMINATED = 0.05
"""An arm less likely than this to end within delta of the highest may be dropped; so many with it that the best of
those that are left is as unlikely to end further below it."""


def p_within(ends: FloatArray, delta: float) -> FloatArray:
    """P(an arm ends within delta of the highest), (K,), from joint draws of their ends, (S, K)."""
    top = ends.max(axis=1, keepdims=True)
    return np.asarray((ends >= top - delta).mean(axis=0))


def dominated(ends: FloatArray, delta: float) -> BoolArray:
    """Which arms can be dropped, (K,).

    Of a hundred arms of which nothing is known each has hardly a chance to be the best, and yet one of them is. So the
    unlikeliest are dropped one by one only as long as what is left holds an arm within delta of the highest, with
    1 - DOMINATED.

    Args:
        ends: joint draws of where the arms end, (S, K).
        delta: the least difference that matters.
    """
    within = p_within(ends, delta)
    order = np.argsort(within, kind="stable")
    left = np.maximum.accumulate(ends[:, order[::-1]], axis=1)[:, ::-1]  # the best from each place of the order on
    lost = (left[:, 1:] < left[:, :1] - delta).mean(axis=0)  # by dropping 1, 2, ... arms
    may = (lost < DOMINATED) & (within[order[:-1]] < DOMINATED)
    number = len(may) if may.all() else int(np.argmin(may))
    found = np.zeros(len(within), dtype=bool)
    found[order[:number]] = True
    return found
