"""What is told of an arm: where the arms together have it, as unsure as it is by itself.

Arms that inform one another are compared well, but the interval of each held .72 to .82 of what came of recorded runs:
all of them leave their curves. Their own forecasts know that, but nothing of the other arms (docs/decisions/0065).
"""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray


def told(joint: FloatArray, own: FloatArray) -> FloatArray:
    """The joint draws, (S,), as far from their median as they are, or as the arm's own, (K,), are from theirs where
    that is further.

    >>> told(np.array([3.0, 1.0, 2.0]), np.array([-5.0, 0.0, 0.5])).tolist()
    [3.0, -3.0, 2.0]
    """
    middle = np.median(joint)
    away, other = joint - middle, in_order_of(joint, own - np.median(own))
    return np.asarray(middle + np.where(np.abs(other) > np.abs(away), other, away))


def in_order_of(draws: FloatArray, others: FloatArray) -> FloatArray:
    """Quantiles of `others`, (K,), in the order of these draws, (S,).

    >>> in_order_of(np.array([3.0, 1.0, 2.0]), np.array([0.5, -5.0, 0.0])).tolist()
    [0.5, -5.0, 0.0]
    """
    place = (np.argsort(np.argsort(draws, kind="stable"), kind="stable") + 0.5) / len(draws)
    return np.asarray(np.sort(others)[(place * len(others)).astype(np.int64)])
