"""The wandering part of the noise: what is thought possible, and how it ties evaluations to one another.

A hypothesis says how large it is, how long it lasts, and whether there is an early regime. The paper cuts the first
1.5k GPU-hours by eye (A.5, A.7). Here a cut-off is a hypothesis: early evaluations lie off the sigmoid by a wandering
part of their own, of variance EARLY_SD^2, of which nothing carries over to later ones. That costs likelihood unless
they really lie off it (docs/decisions/0014).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache, cached_property

import numpy as np
from scipy.linalg.lapack import dpttrf, dpttrs

from ..arrays import FloatArray


@dataclass(frozen=True)
class NoiseHypothesis:
    """One guess at what an evaluation holds beside the curve and sampling noise.

    Attributes:
        eta: variance of the wandering part relative to sampling noise.
        rho: its correlation over one usual gap.
        weight: prior weight, up to a common factor.
        early: so many evaluations at the head belong to an early regime that the sigmoid does not describe.
        head: correlation of two neighbours' distances from the sigmoid within it.
    """

    eta: float
    rho: float
    weight: float
    early: int = 0
    head: float = 0.0


class Hypotheses(tuple[NoiseHypothesis, ...]):
    """Several of them."""

    @cached_property
    def columns(self) -> tuple[FloatArray, ...]:
        """eta, rho, weight, early and head of each, (H,)."""
        return tuple(np.array([float(getattr(one, at.name)) for one in self]) for at in fields(NoiseHypothesis))


_KINDS = (
    (0.50, ((0.0, 0.0),)),
    # Nothing weaker: wandering no larger than sampling noise is as good as white in a short run, and takes from it.
    (0.44, tuple((eta, rho) for eta in (3.0, 8.0, 20.0) for rho in (0.5, 0.8, 0.95))),
    # Slow waves: hidden by the noise of a single evaluation, they outweigh that of the mean of a hundred. In a short
    # run they are as good as white, so that the two share what white noise alone would have there.
    (0.06, ((0.25, 0.95), (0.06, 0.99), (0.25, 0.99))),
)
# The weights are chosen on synthetic runs, half of which have white noise and half a wandering part, so that intervals
# of both kinds cover what they say (benchmarks/calibration.py): too little weight for either and its own cells fail.
HYPOTHESES = Hypotheses(NoiseHypothesis(*kind, weight / len(kinds)) for weight, kinds in _KINDS for kind in kinds)
EARLY_SD = 0.3  # of the reward's range: how far an early regime may lie from the sigmoid
# (eta, rho) after it, and head: evaluations that lie off it all alike, that jump about, and that wander later.
_EARLY_KINDS = ((0.0, 0.0, 0.999), (0.0, 0.0, 0.95), (2.0, 0.7, 0.999))
_EARLY_COUNTS = (3, 5, 8, 12, 20, 33, 55)
_EARLY_WEIGHT = 0.01  # each; 0.21 in all when every cut-off is possible


@cache
def hypotheses_for(size: int) -> Hypotheses:
    """The noise hypotheses of N evaluations: early cut-offs only where twice as many evaluations remain."""
    cuts = [count for count in _EARLY_COUNTS if size >= 3 * count]
    early = (NoiseHypothesis(eta, rho, _EARLY_WEIGHT, cut, head) for cut in cuts for eta, rho, head in _EARLY_KINDS)
    return Hypotheses((*HYPOTHESES, *early))


@dataclass(frozen=True, eq=False)
class Wandering:
    """The wandering part under each hypothesis (rows) at each evaluation (columns), (H, N) each.

    Attributes:
        variance: relative to sampling noise; 0 where nothing wanders.
        decay: correlation with the evaluation before.
    """

    variance: FloatArray
    decay: FloatArray

    @classmethod
    def of(cls, hypotheses: Hypotheses, ticks: FloatArray, unit: float) -> Wandering:
        """Laid out along the clock.

        Args:
            ticks: since the evaluation before, (N,).
            unit: v, of rewards that lie in [0, 1].
        """
        eta, rho, _, early, head = (column[:, None] for column in hypotheses.columns)
        at = np.arange(len(ticks))
        variance = np.where(at < early, EARLY_SD**2 / unit, eta)
        decay = np.where(at < early, head, rho) ** ticks
        decay[(variance == 0) | (at == early) & (early > 0)] = 0.0
        return cls(variance, decay)


class Whitener:
    """M^-1 x with M = diag(w) + K, for one hypothesis, at O(N) a column.

    Args:
        shares: w, shape (N,), mean 1.
        variance, decay: of the wandering part, see `Wandering`, shape (N,); from where it is 0 on it stays so.
    """

    def __init__(self, shares: FloatArray, variance: FloatArray, decay: FloatArray):
        self._weights = 1.0 / shares
        self._wandering = slice(0, int(np.count_nonzero(variance)))
        if not variance[0]:
            return
        variance, rho = variance[self._wandering], decay[self._wandering][1:]
        # K^-1 of an OU process: tridiagonal; P = K^-1 + W^-1 = L D L'
        steps = np.append(variance[0], variance[1:] * (1.0 - rho**2))
        diagonal = 1.0 / steps + self._weights[self._wandering]
        diagonal[:-1] += rho**2 / steps[1:]
        self._d, self._e, info = dpttrf(diagonal, -rho / steps[1:])
        assert info == 0, "the precision of an OU process is positive definite"

    def solve(self, columns: FloatArray) -> FloatArray:
        """M^-1 columns, for shape (N,) or (N, K)."""
        weights = self._weights if columns.ndim == 1 else self._weights[:, None]
        scaled = weights * columns
        part = self._wandering
        if part.stop:
            inner, _ = dpttrs(self._d, self._e, scaled[part])
            scaled[part] -= weights[part] * inner.reshape(scaled[part].shape)
        return np.asarray(scaled)
