"""The draws of a fit as theta = (A, ln B, ln C_mid), with the density of the prior under which they were made.

With it the fit can be weighed anew under another prior, as a member of a family or a sweep, without being made again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, IntArray
from ..posterior.prior import FLAT, Box, Prior, box_of, student_t
from ..posterior.usual_rise import log_usual_rise
from .remembered import remembered

if TYPE_CHECKING:
    from ..fitting.fit import Fit

_THIN_KEPT = 4


@dataclass(frozen=True, eq=False)
class Parameters:
    """Draws of one run: theta (D, 3), A as a share of the range of rewards, and the log prior density of each (D,).

    `prior` is that of A in [0, 1]; `box` that of its flat part. `index` are the places of
    the draws among the fit's own.
    """

    theta: FloatArray
    log_prior: FloatArray
    prior: Prior
    box: Box
    index: IntArray

    def thinned(self, most: int) -> Parameters:
        """At most so many of the draws, evenly spread. The last few are kept: families that a run is one of differ by
        a run or two."""
        if most >= len(self.theta):
            return self
        thin = self._thin.get(most)
        if thin is None:
            if len(self._thin) == _THIN_KEPT:
                self._thin.clear()
            at = _evenly(len(self.theta), most)
            thin = Parameters(self.theta[at], self.log_prior[at], self.prior, self.box, self.index[at])
            self._thin[most] = thin
        return thin

    @cached_property
    def _thin(self) -> dict[int, Parameters]:
        return {}


@lru_cache(maxsize=64)
def _evenly(size: int, most: int) -> IntArray:
    """So many places of `size`, evenly spread; a backtest asks for the same ones of every run."""
    places = np.linspace(0, size - 1, most).astype(np.int64)
    places.flags.writeable = False
    return places


@remembered
def parameters_of(fit: Fit) -> Parameters:
    """All draws of a fit."""
    low, width = fit.curve.bounds[0], fit.curve.width
    d, prior = fit.all_draws, fit.prior.of_share(fit.curve)
    theta = np.stack([(d.A - low) / width, np.log(d.B), np.log(d.C_mid)], axis=1)
    box = box_of(FLAT, fit.curve.compute)
    log_prior = log_density(prior, theta, box, log_usual_rise(theta[:, 0], (d.R0 - low) / width))
    return Parameters(theta, log_prior, prior, box, np.arange(len(theta)))


def log_density(prior: Prior, theta: FloatArray, box: Box, log_flat_A: FloatArray | float) -> FloatArray:
    """Log density of a prior at theta (D, 3): its Student-t part and its flat part."""
    flat = log_flat_A, box.log_density_b(theta[:, 1]), box.log_density_mid
    every_flat = np.asarray(sum(flat))
    if not prior.informative:
        return every_flat
    pairs = (prior.A, prior.log_B, prior.log_C_mid)
    known = np.zeros(len(theta))
    for at, (pair, open_one) in enumerate(zip(pairs, flat, strict=True)):
        known += open_one if pair is None else student_t(theta[:, at], *pair, prior.dof)
    return np.asarray(np.logaddexp(np.log(prior.weight) + known, np.log(1 - prior.weight) + every_flat))
