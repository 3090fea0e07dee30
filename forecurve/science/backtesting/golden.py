"""Golden-section search, many at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import BoolArray, FloatArray

_RATIO = (np.sqrt(5.0) - 1) / 2


def golden(
    left_is_lower: Callable[[FloatArray, FloatArray], BoolArray], centre: FloatArray, step: float, rounds: int
) -> FloatArray:
    """Where functions of one variable are least, (K,), each between centre - step and centre + step.

    Args:
        left_is_lower: whether each function is lower at the first of two places than at the second; of shape (K,) all.
        centre: of each, (K,).
        step: how far from there to search, on either side.
        rounds: each leaves 0.618 of where the least may be.
    """
    low, high = centre - step, centre + step
    for _ in range(rounds):
        left, right = high - _RATIO * (high - low), low + _RATIO * (high - low)
        lower = left_is_lower(left, right)
        low, high = np.where(lower, low, left), np.where(lower, right, high)
    return (low + high) / 2
