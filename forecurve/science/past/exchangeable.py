"""What runs tell of one quantity of one more of them, where no run is more alike to another than all are.

    theta_i ~ N(mu, s^2),    p(mu, s | all)  =  p(s) prod_i sum over bins of L_i N(bin | mu, s^2)

on a lattice of (mu, s), mu uniform; L_i is what the data of run i say of theta_i, on a line of bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import logsumexp

from ..arrays import FloatArray, IntArray
from .mixtures import log_mixed

WORTH = 3.0
"""Runs that what is usual counts for, before any is seen."""
TOLD = 0.5
"""Least share of the usual variance that runs must take away for a quantity to count as told."""
_SHARES: FloatArray = np.geomspace(0.25, 16.0, 25)  # of the usual spread
_BINS_A_SPREAD = 4
BINS_A_CENTRE = 2


def bins_over(low: float, high: float, spread: float) -> FloatArray:
    """A line of bins fine enough for a spread."""
    return np.linspace(low, high, 1 + int(np.ceil(_BINS_A_SPREAD * (high - low) / spread)), dtype=np.float64)


def share_in_bins(values: FloatArray, log_weight: FloatArray, bins: FloatArray) -> FloatArray:
    """The share of weighed draws (D,) in each bin: a likelihood where the weight is one over the prior's density."""
    return np.asarray(InBins.of(values, np.zeros(1, dtype=np.int64), bins).shares(log_weight)[0])


@dataclass(frozen=True, eq=False)
class InBins:
    """Where draws of R runs lie on a line of bins, to be weighed in one way or another.

    Attributes:
        starts: where each run's draws begin among all, (R,).
        each: whose every draw is, (D,).
        below: the bin below each, on the lines of all runs one after another, (D,).
        share: of it that is in the bin above, so that the mean stays where it is, (D,).
        width: the number of bins.
    """

    starts: IntArray
    each: IntArray
    below: IntArray
    share: FloatArray
    width: int

    @classmethod
    def of(cls, values: FloatArray, starts: IntArray, bins: FloatArray) -> InBins:
        """Draws of all runs one after another, (D,)."""
        each = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(values)))
        place = np.clip((values - bins[0]) / (bins[1] - bins[0]), 0.0, len(bins) - 1.001)
        below = place.astype(np.int64)
        return cls(starts, each, below + each * len(bins), place - below, len(bins))

    def shares(self, log_weight: FloatArray) -> FloatArray:
        """The share of each run's weighed draws in each bin, (R, bins)."""
        weight = np.exp(log_weight - np.maximum.reduceat(log_weight, self.starts)[self.each])
        above, size = weight * self.share, len(self.starts) * self.width
        found = np.bincount(self.below, weight * (1 - self.share), size)
        found += np.bincount(self.below + 1, above, size)
        found = found.reshape(-1, self.width)
        return np.asarray(found / found.sum(axis=1, keepdims=True))


def told_by_all(known: FloatArray, bins: FloatArray, spread: float) -> tuple[float, float]:
    """Mean for one more run, and the squared scale of the Student-t that averaging over its spread gives.

    Args:
        known: likelihood of each run in each bin, (R, bins).
        bins: where theta is looked at.
        spread: of runs before any is seen.
    """
    centres, spreads = bins[::BINS_A_CENTRE], spread * _SHARES
    normals = _normals(bins.tobytes(), spread)
    log_lattice = np.stack([mixed.sum(axis=0) for mixed in log_mixed(known, normals)])
    log_lattice += log_spread(_SHARES, WORTH)[:, None]
    share = np.exp(log_lattice - logsumexp(log_lattice))
    mean = float(share.sum(axis=0) @ centres)
    return mean, float(1 / (share.sum(axis=1) @ spreads**-2) + share.sum(axis=0) @ (centres - mean) ** 2)


def log_spread(share: FloatArray, weight: float) -> FloatArray:
    """Log density of ln s at shares of the usual spread: as if so many runs had shown the usual one."""
    return np.asarray(-weight * np.log(share) - 0.5 * weight / share**2)


@lru_cache(maxsize=8)
def _normals(bins: bytes, spread: float) -> FloatArray:
    """A normal about each centre, up to a factor, at every bin, for each share of the spread; (spreads, bins, M). Every
    family of a backtest is asked on the same line of bins."""
    line = np.frombuffer(bins)
    spreads = (spread * _SHARES)[:, None, None]
    return np.asarray(np.exp(-0.5 * ((line[:, None] - line[::BINS_A_CENTRE]) / spreads) ** 2) / spreads)
