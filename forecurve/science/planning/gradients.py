"""The correlated knowledge gradient, in closed form: what it gains on average to learn where several means move.

Means move together by a slope each times one normal number, and the best of them is taken afterwards. The expected
highest of such lines is a sum over the places where another line comes out on top (Frazier, Powell and Dayanik 2009,
equation 14). Of many looks at once each step finds every look's next such place.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from ..arrays import FloatArray

_PARALLEL = 1e-12  # of how far the slopes of a look lie apart
_REACH = 12.0  # standard deviations, beyond which what a line gains is below 1e-33 of its slope


def knowledge_gradients(mean: FloatArray, slopes: FloatArray) -> FloatArray:
    """E[max_a (mean_a + slope_a Z)] - max_a mean_a for Z ~ N(0, 1), of each row of slopes, (N,).

    Args:
        mean: of the A arms, (A,).
        slopes: how far each mean moves per standard deviation, (N, A).

    >>> knowledge_gradients(np.array([0.0, 0.0]), np.array([[1.0, 0.0]])).round(4)  # E[max(Z, 0)] = 1 / sqrt(2 pi)
    array([0.3989])
    """
    mean, slopes = _that_may_be_highest(mean, slopes)
    total, rows, least = np.zeros(len(slopes)), np.arange(len(slopes)), _PARALLEL * np.ptp(slopes, axis=1)
    top = (mean - _REACH * slopes).argmax(axis=1)
    while len(rows):
        rise = slopes - np.take_along_axis(slopes, top[:, None], axis=1)
        steeper = rise > least[:, None]
        at = np.where(steeper, mean[top][:, None] - mean, np.inf) / np.where(steeper, rise, 1.0)
        top = at.argmin(axis=1)
        at, rise = (np.take_along_axis(of, top[:, None], axis=1)[:, 0] for of in (at, rise))
        on = at < _REACH
        rows, slopes, top, least = rows[on], slopes[on], top[on], least[on]
        total[rows] += rise[on] * _expected_excess(at[on])
    return total


def _that_may_be_highest(mean: FloatArray, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Without the lines that stay below the one with the highest mean in every row, as far as anything counts."""
    highest = int(mean.argmax())
    apart = np.abs(slopes - slopes[:, [highest]]).max(axis=0, initial=0.0)
    kept = _REACH * apart >= mean[highest] - mean
    return mean[kept], slopes[:, kept]


def _expected_excess(at: FloatArray) -> FloatArray:
    """E[max(Z - |z|, 0)], by which the highest rises for each unit that the slope does at z."""
    z = -np.abs(at)
    return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) + z * ndtr(z))
