"""How many answers an evaluation rests on, where nobody says it and the rewards themselves do.

A pass rate of k answers is a multiple of 1 / k. Where all of a run's are, to the decimals with which they are written,
and by chance would hardly be, k is taken for known: training rewards are logged so, with 8, 16 or 64 answers a step.
"""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray, IntArray

LOOKED_AT = 64  # first evaluations: what they do not tell, later ones are not asked for
MOST_ANSWERS = 64  # beyond, multiples lie so dense that rounding makes them
_BY_CHANCE = 1e-4
_DECIMALS = 6  # with which a number may be written to count as rounded


def answers_told_by(rate: FloatArray) -> int | None:
    """The least k of which all pass rates are multiples of 1 / k; None where there is none up to 64, or rates that know
    nothing of it would be so with a probability above 1e-4.

    Args:
        rate: in [0, 1], shape (N,); 0 and 1 are multiples of any.

    >>> answers_told_by(np.array([0.125, 0.25, 0.375, 0.3125, 0.5])), answers_told_by(np.array([0.31, 0.37, 0.4, 0.42]))
    (16, None)
    >>> answers_told_by(np.array([0.0, 0.5, 0.5, 1.0])) is None  # as rounded to a tenth as of two answers
    True
    """
    inside = np.unique(np.round(rate[:LOOKED_AT], 9))
    inside = inside[(inside > 0) & (inside < 1)]
    if len(inside) == 0:
        return None
    step, slack = _written(inside)
    answers = np.arange(2, MOST_ANSWERS + 1)
    off = np.abs(inside[:, None] * answers - np.round(inside[:, None] * answers)) / answers
    fitting = np.flatnonzero((off <= slack).all(axis=0))
    if len(fitting) == 0:
        return None
    least = int(answers[fitting[0]])
    chance = min((least - 1) * max(step, 2 * slack), 1.0)  # that one number written so is such a multiple
    return least if chance ** len(inside) < _BY_CHANCE else None


def is_told(
    prompts: FloatArray | None, variance: FloatArray | None, counts: tuple[IntArray | None, ...] | None
) -> bool:
    """Whether anybody says how large one of the evaluations is. A variance of 0 says "unknown"."""
    columns = (column for column in (prompts, variance) if column is not None)
    return any((column > 0).any() for column in columns) or any(row is not None for row in counts or ())


def _written(rates: FloatArray) -> tuple[float, float]:
    """(step, slack): how far numbers that are written so lie apart, and from what they stand for."""
    for decimals in range(1, _DECIMALS):
        if np.allclose(np.round(rates, decimals), rates, rtol=0.0, atol=1e-9):
            return 10.0**-decimals, 0.5 * 10.0**-decimals + 1e-9
    return 10.0**-_DECIMALS, 0.5 * 10.0**-_DECIMALS
