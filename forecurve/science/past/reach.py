"""How far an interval has to reach so that it holds 90 %, told by the scores of n past ones.

Any rule for exchangeable scores covers k / (n + 1) with the k-th smallest of them (Vovk, Gammerman and Shafer 2005).
From 19 scores on that is the rank of plain split-conformal prediction, ceil(0.9 (n + 1)). From 9 to 18 this rank is n,
the largest score, and one odd run among ten makes every interval as wide as it was odd, while the second largest would
cover 80 to 89 %. Between these two the place is taken that a heavy-tailed law of the scores gives,

    1.645 z_j = s |t_nu|,

with s and nu averaged by their evidence over a lattice: log s is N(0, 1) beforehand, since a half width of the
posterior is meant to be 1.645 sd, and all nu from 1 (Cauchy) to 50 (nearly normal) are alike. The guarantee that is
left is that of the second largest, (n - 1) / (n + 1).

With fewer than 9 no score is large enough, and the law says it alone. Beforehand half of it then is on intervals that
are right as they are (s = 1, nu = 50): few past runs move them as far as they contradict them. Nothing is guaranteed.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, stdtr

from ..arrays import FloatArray
from ..values import SDS_TO_A_SIDE

LEVEL = 0.9
RANKS_FROM = 9
"""With fewer, no score is large enough to cover 90 %."""
PLAIN_FROM = 19
"""From here on the rank that covers 90 % lies below the largest score."""

_SCALES = np.exp(np.linspace(math.log(0.1), math.log(20.0), 28))
_TAILS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 50.0)
_AS_TOLD = 0.5  # that intervals are right as they are, where few scores say whether
_FURTHEST = 1e6


def reach(scores: FloatArray) -> float:
    """The score that a new one stays below with 90 %.

    Args:
        scores: |error| in half widths of the interval, of past ones, each above or equal 0, shape (n,).

    >>> reach(np.arange(1.0, 20.0))
    18.0
    >>> few = np.array([0.3, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 30.0])
    >>> 1.0 <= reach(few) < 5.0
    True
    >>> reach(np.array([0.2, 0.4, 0.6])) < 1.2 < 3.0 < reach(np.array([2.0, 3.0, 4.0]))
    True
    """
    ordered = np.sort(scores)
    if len(ordered) < RANKS_FROM:
        law = _Law(ordered, as_told=_AS_TOLD)
        return float(brentq(lambda score: law.below(score) - LEVEL, 0.0, _FURTHEST, rtol=1e-6))
    if len(ordered) >= PLAIN_FROM:
        return float(ordered[math.ceil(LEVEL * (len(ordered) + 1) - 1e-9) - 1])
    law = _Law(ordered)
    low, high = float(ordered[-2]), float(ordered[-1])
    if law.below(low) >= LEVEL:
        return low
    if law.below(high) <= LEVEL:
        return high
    return float(brentq(lambda score: law.below(score) - LEVEL, low, high, rtol=1e-6))


class _Law:
    """The law of a new score given past ones: a mixture of scaled half-t's. `as_told`: a share beforehand for s = 1."""

    def __init__(self, scores: FloatArray, as_told: float = 0.0):
        self._scale, self._tail, log_weight, log_norm = _knots(as_told)
        apart = (SDS_TO_A_SIDE * scores[:, None] / self._scale) ** 2 / self._tail
        log_likelihood = (log_norm - (self._tail + 1) / 2 * np.log1p(apart)).sum(axis=0)
        weight = np.exp(log_likelihood + log_weight - (log_likelihood + log_weight).max())
        self._weight = weight / weight.sum()

    def below(self, score: float) -> float:
        """P(a new score is at most this one)."""
        return float(self._weight @ (2 * stdtr(self._tail, SDS_TO_A_SIDE * score / self._scale) - 1))


@lru_cache(maxsize=2)
def _knots(as_told: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Scale, degrees of freedom, log prior weight and log density at 0 of the lattice's K knots, each of shape (K,)."""
    scale, tail = (grid.ravel() for grid in np.meshgrid(_SCALES, _TAILS))
    weight = np.exp(-0.5 * np.log(scale) ** 2)
    if as_told:
        scale, tail = np.append(scale, 1.0), np.append(tail, _TAILS[-1])
        weight = np.append(weight / weight.sum() * (1 - as_told), as_told)
    log_norm = gammaln((tail + 1) / 2) - gammaln(tail / 2) - 0.5 * np.log(tail) - np.log(scale)
    return scale, tail, np.log(weight), log_norm
