"""What finished runs tell of the noise of the next one like them: whether it wanders, and how large it is.

A dozen evaluations cannot tell white noise from wandering, nor how noisy they are; a hundred can, and a dozen runs of a
hundred tell a slow wave from none even where each evaluation is ten times as noisy. Each run's noise is of one kind k,
a hypothesis (eta, rho), and kinds are drawn with shares pi:

    pi ~ Dirichlet(c w),    r_ik ~ (c w_k + sum over other runs j of r_jk) L_ik

with w the weights before any run is seen, worth c runs; L_ik the marginal likelihood of run i under kind k, its curve
and the noise's size integrated out; r_ik the probability that run i is of kind k, iterated (collapsed variational
Bayes of order 0: Asuncion et al. 2009, arXiv 1205.2662). The size ln alpha_i is one more quantity that exchangeable
runs share (`exchangeable`), among runs whose sampling variance is known from the same source.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammainccinv, logsumexp, polygamma

from ..arrays import FloatArray
from ..curves.noise import ALPHA_PRIOR, NoiseKnown
from ..curves.wandering import HYPOTHESES
from .exchangeable import TOLD, WORTH, bins_over, share_in_bins, told_by_all
from .remembered import remembered

if TYPE_CHECKING:
    from ..fitting.fit import Fit

SIZE_SPREAD = 0.3  # of ln alpha between runs, before any is seen
_ROUNDS = 50
_FAINT = 12.0  # a kind that a fit has left out lies so far below its best one
_LEAST_RUNS = 2
_TAIL = 5e-4  # of the usual sizes on either side, left out


def noise_known(fits: Sequence[Fit]) -> NoiseKnown | None:
    """From finished runs; None where fewer than 2 of them tell.

    Runs whose forecast is withheld tell nothing: a break looks like wandering. Nor do those of which
    neighbouring evaluations were averaged: their noise is another.
    """
    told = [fit for fit in fits if not fit.withheld and not fit.averaged]
    if len(told) < _LEAST_RUNS:
        return None
    weights = _kinds(np.stack([_log_evidence(fit) for fit in told]))
    by_source = {source: [fit for fit in told if fit.setting.source == source] for source in ALPHA_PRIOR}
    sizes = {source: _size(source, those) for source, those in by_source.items() if len(those) >= _LEAST_RUNS}
    return NoiseKnown(
        tuple(weights.tolist()), tuple((source, *size) for source, size in sizes.items() if size is not None)
    )


def _kinds(log_evidence: FloatArray) -> FloatArray:
    """Shares of the kinds for one more run, (K,), from the evidence of each run for each kind, (R, K)."""
    usual = WORTH * np.array([kind.weight for kind in HYPOTHESES])
    own = _normalised(log_evidence + np.log(usual))
    for _ in range(_ROUNDS):
        own = _normalised(log_evidence + np.log(usual + own.sum(axis=0) - own))
    total = usual + own.sum(axis=0)
    return np.asarray(total / total.sum())


def _normalised(log_weight: FloatArray) -> FloatArray:
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


@remembered
def _log_evidence(fit: Fit) -> FloatArray:
    """Log marginal likelihood of each kind, up to a constant: (K,)."""
    table, setting = fit.table, fit.setting
    found = logsumexp(table.masses.pairs, axis=(0, 2)) - setting.log_weights[table.alive]
    every = np.full(len(setting.hypotheses), found.max() - _FAINT)
    every[table.alive] = found
    return np.asarray(every[: len(HYPOTHESES)])


def _size(source: str, fits: Sequence[Fit]) -> tuple[float, float] | None:
    """Shape and rate of alpha's inverse-gamma for one more run; None where little is told."""
    known = np.array([_size_likelihood(fit) for fit in fits])
    mean, variance = told_by_all(known, _size_bins(source), SIZE_SPREAD)
    return _inverse_gamma(mean, variance) if variance <= (1 - TOLD) * polygamma(1, ALPHA_PRIOR[source][0]) else None


@remembered
def _size_likelihood(fit: Fit) -> FloatArray:
    """What its own data say of ln alpha: a share in each bin."""
    shape, rate = ALPHA_PRIOR[fit.setting.source]
    alpha = fit.posterior.alpha
    log_usual = -shape * np.log(alpha) - rate / alpha  # density of ln alpha before any run is seen, but for a factor
    return share_in_bins(np.log(alpha), -log_usual, _size_bins(fit.setting.source))


@cache
def _size_bins(source: str) -> FloatArray:
    shape, rate = ALPHA_PRIOR[source]
    low, high = np.log(rate / gammainccinv(shape, [_TAIL, 1 - _TAIL]))  # quantiles before any run is seen
    return bins_over(float(low), float(high), SIZE_SPREAD)


def _inverse_gamma(mean: float, variance: float) -> tuple[float, float]:
    """Shape and rate at which ln alpha has this mean and variance."""
    shape = float(brentq(lambda a: polygamma(1, a) - variance, 1e-3, 1e6))
    return shape, float(np.exp(mean + digamma(shape)))
