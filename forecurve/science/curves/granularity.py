"""How many answers an evaluation rests on, where nobody says it and the rewards themselves do.

A pass rate of k answers is a multiple of 1 / k. Where all of a run's are, to the decimals with which they are written,
and by chance would hardly be, k is taken for known: training rewards are logged so, with 8, 16 or 64 answers a step,
and evaluations on held-out prompts, with 500, 1,319 or 16,000.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from ..arrays import FloatArray, IntArray

LOOKED_AT = 64  # first evaluations: what they do not tell, later ones are not asked for
MOST_ANSWERS = 20_000
_BY_CHANCE = 1e-4
_FEW = 64  # answers; beyond, as many more numbers are tried as there are more
_DECIMALS = 6  # with which a number may be written to count as rounded
_BLOCKS = (1, 4, 16, LOOKED_AT)  # rates that are looked at together: few numbers of answers outlast the first
_IN_COMMON = 4  # a factor of what two whole numbers are seldom both a multiple of
_NUMBERS = np.arange(2.0, MOST_ANSWERS + 1)


def answers_told_by(rate: FloatArray) -> int | None:
    """The least k of which all pass rates are multiples of 1 / k; None where there is none up to 20,000, or where rates
    that know nothing of it would be so with a probability above 1e-4.

    Args:
        rate: in [0, 1], shape (N,); 0 and 1 are multiples of any.

    >>> answers_told_by(np.array([0.125, 0.25, 0.375, 0.3125, 0.5])), answers_told_by(np.array([0.31, 0.37, 0.4, 0.42]))
    (16, None)
    >>> answers_told_by(np.array([994, 1021, 1056, 1080]) / 1319)
    1319
    >>> answers_told_by(np.array([0.0, 0.5, 0.5, 1.0])) is None  # as rounded to a tenth as of two answers
    True
    """
    inside = np.unique(np.round(rate[:LOOKED_AT], 9))
    inside = inside[(inside > 0) & (inside < 1)]
    if len(inside) == 0:
        return None
    step, slack = _written(inside)
    answers, first = _NUMBERS[: _most_told(len(inside), max(step, 2 * slack)) - 1], 0
    for upto in _BLOCKS:
        multiples = inside[first:upto, None] * answers
        answers = answers[(np.abs(multiples - np.rint(multiples)) <= slack * answers).all(axis=0)]
        first = upto
    return int(answers[0]) if len(answers) and _is_one_size(inside, int(answers[0])) else None


def are_of(rate: FloatArray, answers: int) -> bool:
    """Whether all pass rates, shape (N,), may be of so many answers, to the decimals with which they are written.

    >>> are_of(np.array([0.156, 0.408, 0.0]), 500), are_of(np.array([0.156, 0.407, 0.0]), 500)
    (True, False)
    """
    inside = np.unique(np.round(rate[:LOOKED_AT], 9))
    if len(inside) == 0:
        return True
    multiples = inside * answers
    return bool((np.abs(multiples - np.rint(multiples)) <= _written(inside)[1] * answers).all())


def _is_one_size(rates: FloatArray, answers: int) -> bool:
    """Whether half of the rates and more are in lowest terms of about so many answers, a quarter at least. Where sizes
    change, those of all are multiples of each: 1/72 and 1/88 of 1/792."""
    terms = np.gcd(np.rint(rates * answers).astype(np.int64), answers)
    return float(np.median(terms)) <= _IN_COMMON


def _most_told(rates: int, near: float) -> int:
    """The largest number of answers that so many rates can tell, at least 1.

    By chance one of them is a multiple of 1 / k with a probability of (k - 1) x near.
    """

    def by_chance(answers: int) -> float:
        return max(answers / _FEW, 1.0) * min((answers - 1) * near, 1.0) ** rates

    return bisect_left(range(2, MOST_ANSWERS + 1), _BY_CHANCE, key=by_chance) + 1


def is_told(
    prompts: FloatArray | None, variance: FloatArray | None, counts: tuple[IntArray | None, ...] | None
) -> bool:
    """Whether anybody says how large one of the evaluations is. A variance of 0 says "unknown"."""
    columns = (column for column in (prompts, variance) if column is not None)
    return any((column > 0).any() for column in columns) or any(row is not None for row in counts or ())


def _written(rates: FloatArray) -> tuple[float, float]:
    """(step, slack): how far numbers that are written so lie apart, and from what they stand for."""
    for decimals in range(1, _DECIMALS):
        if np.abs(np.round(rates, decimals) - rates).max() <= 1e-9:
            return 10.0**-decimals, 0.5 * 10.0**-decimals + 1e-9
    return 10.0**-_DECIMALS, 0.5 * 10.0**-_DECIMALS
