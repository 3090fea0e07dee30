"""How noisy one evaluation is, and how the noise of neighbouring evaluations hangs together.

An evaluation is the curve + a slowly wandering part (an Ornstein-Uhlenbeck process in compute) + sampling noise:

    Cov(y) = alpha * v * (diag(w) + eta * K),    K_st = rho^|u_s - u_t|

with v the mean nominal sampling variance, w each evaluation's share of it, u a clock that ticks once per usual gap
between evaluations. alpha has an inverse-gamma prior that depends on what is known of the noise; (eta, rho) take a
few values with prior weights. K has a tridiagonal inverse, so that everything costs O(N) per parameter node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpttrf, dpttrs

from .arrays import FloatArray, IntArray

# Inverse-gamma (shape, rate) of alpha, by what is known. "known": sampling variance from per-prompt counts or given:
# hardly below it, possibly well above (wandering, changed prompts). "binomial": an upper bound for a fixed prompt set
# (measured: a third to a half of it), so alpha may lie below 1. "unknown": a wide guess around UNKNOWN_SD.
ALPHA_PRIOR = {"known": (3.0, 3.0), "binomial": (2.0, 1.0), "unknown": (0.75, 0.5)}
UNKNOWN_SD = 0.015


@dataclass(frozen=True)
class SamplingNoise:
    """Nominal sampling variance of each evaluation, shape (N,), in the reward's own scale, and where it comes from."""

    variance: FloatArray
    source: str  # known | binomial | unknown


@dataclass(frozen=True)
class NoiseHypothesis:
    """One guess at the wandering part: its variance relative to sampling noise, its correlation over one usual gap."""

    eta: float
    rho: float
    weight: float


HYPOTHESES = (
    NoiseHypothesis(0.0, 0.0, 0.5),
    *(NoiseHypothesis(eta, rho, 0.125) for eta in (1.0, 4.0) for rho in (0.5, 0.85)),
)


def sampling_noise(
    rate: FloatArray,
    scale: float,
    prompts: FloatArray | None,
    samples: FloatArray | None,
    variance: FloatArray | None,
    counts: tuple[IntArray | None, ...] | None,
) -> SamplingNoise:
    """The best nominal variance that the curve's columns allow.

    Args:
        rate: rewards moved to [0, 1], shape (N,).
        scale: width of the reward's own range; variances come back in that range.
        prompts, samples, variance, counts: as in `Curve`.
    """
    exact = _exact_variance(rate, scale, samples, variance, counts)
    rough = _binomial_variance(rate, prompts, samples) * scale**2
    if not np.isnan(exact).all():
        return SamplingNoise(_fill(np.where(np.isnan(exact), rough, exact)), "known")
    if not np.isnan(rough).all():
        return SamplingNoise(_fill(rough), "binomial")
    return SamplingNoise(np.full(rate.shape, (UNKNOWN_SD * scale) ** 2), "unknown")


def _exact_variance(
    rate: FloatArray,
    scale: float,
    samples: FloatArray | None,
    variance: FloatArray | None,
    counts: tuple[IntArray | None, ...] | None,
) -> FloatArray:
    exact = np.full(rate.shape, np.nan) if variance is None else variance.astype(np.float64, copy=True)
    exact[exact <= 0] = np.nan  # a variance of 0 says "unknown": no evaluation is exact
    if counts is None or samples is None:
        return exact
    for at, row in enumerate(counts):
        if row is not None and np.isnan(exact[at]) and samples[at] >= 2:
            exact[at] = counts_variance(row, int(samples[at])) * scale**2
    return exact


def counts_variance(counts: IntArray, samples: int) -> float:
    """Sampling variance of the mean pass rate over a FIXED prompt set: sum p(1-p)/(k-1) / N^2.

    Args:
        counts: successes per prompt, shape (N,).
        samples: samples per prompt, k >= 2.

    Returns:
        The variance, at least a tenth of the smoothed binomial one so that it is never 0.
    """
    p = counts / samples
    size = len(counts)
    binomial = _smoothed_binomial(np.array([p.mean()]), np.array([float(size * samples)]))[0]
    return float(max((p * (1 - p)).sum() / (samples - 1) / size**2, 0.1 * binomial))


def _binomial_variance(rate: FloatArray, prompts: FloatArray | None, samples: FloatArray | None) -> FloatArray:
    if prompts is None and samples is None:
        return np.full(rate.shape, np.nan)
    number = np.ones(rate.shape)
    known = np.zeros(rate.shape, dtype=bool)
    for column in (prompts, samples):
        if column is not None:
            number = number * np.where(np.isnan(column), 1.0, column)
            known |= ~np.isnan(column)
    return np.where(known, _smoothed_binomial(rate, number), np.nan)


def _smoothed_binomial(rate: FloatArray, number: FloatArray) -> FloatArray:
    """p(1-p)/n with two successes and two failures added (Agresti-Coull), so that 0 and 1 have a variance."""
    p = (rate * number + 2.0) / (number + 4.0)
    return np.asarray(p * (1.0 - p) / number)


def _fill(variance: FloatArray) -> FloatArray:
    return np.where(np.isnan(variance), np.nanmedian(variance), variance)


def evaluation_clock(compute: FloatArray) -> tuple[FloatArray, float]:
    """(u, usual gap): u, shape (N,), starts at 0 and ticks once per usual gap in compute.

    Ticks are kept within 0.2 and 5, so that log-spaced evaluations are neither glued together nor cut apart.
    """
    gaps = np.diff(compute)
    usual = float(np.median(gaps))
    return np.concatenate([[0.0], np.cumsum(clock_ticks(gaps, usual))]), usual


def clock_ticks(gaps: FloatArray, usual: float) -> FloatArray:
    """Gaps in compute turned into ticks of the evaluation clock."""
    return np.clip(gaps / usual, 0.2, 5.0)


class Whitener:
    """The inner product x' M^-1 y with M = diag(w) + eta K, for one hypothesis, at O(N) a column.

    Args:
        hypothesis: eta and rho.
        shares: w, shape (N,), mean 1.
        clock: u, shape (N,), increasing.
    """

    def __init__(self, hypothesis: NoiseHypothesis, shares: FloatArray, clock: FloatArray):
        self.hypothesis = hypothesis
        self._weights = 1.0 / shares
        self.logdet = float(np.log(shares).sum())
        self._last = np.zeros(len(shares))
        if hypothesis.eta == 0:
            return
        rho = hypothesis.rho ** np.diff(clock)
        self._last = hypothesis.rho ** (clock[-1] - clock)
        # K^-1 of an OU process: tridiagonal; P = K^-1/eta + W^-1 = L D L'
        steps = 1.0 / (1.0 - rho**2)
        diagonal = np.ones(len(shares))
        diagonal[:-1] += rho**2 * steps
        diagonal[1:] += rho**2 * steps
        self._d, self._e, info = dpttrf(diagonal / hypothesis.eta + self._weights, -rho * steps / hypothesis.eta)
        assert info == 0, "the precision of an OU process is positive definite"
        self.logdet += len(shares) * np.log(hypothesis.eta) + float(np.log(1.0 - rho**2).sum() + np.log(self._d).sum())

    def solve(self, columns: FloatArray) -> FloatArray:
        """M^-1 columns, for shape (N,) or (N, K)."""
        weights = self._weights if columns.ndim == 1 else self._weights[:, None]
        scaled = weights * columns
        if self.hypothesis.eta == 0:
            return scaled
        inner, _ = dpttrs(self._d, self._e, scaled)
        return np.asarray(scaled - weights * inner.reshape(scaled.shape))

    def squares(self, columns: FloatArray) -> FloatArray:
        """x' M^-1 x of every column: (N, K) -> (K,)."""
        scaled = self._weights[:, None] * columns
        total = np.einsum("nk,nk->k", columns, scaled)
        if self.hypothesis.eta > 0:
            inner, _ = dpttrs(self._d, self._e, scaled)
            total -= np.einsum("nk,nk->k", scaled, inner)
        return np.asarray(total)

    def last_state(self) -> tuple[FloatArray, float]:
        """(a, p): the wandering part at the last evaluation has mean a . residuals and variance p alpha v."""
        eta = self.hypothesis.eta
        if eta == 0:
            return self._last, 0.0
        gain = eta * self.solve(self._last)
        return gain, max(eta - eta * float(self._last @ gain), 0.0)


def whiteners(shares: FloatArray, clock: FloatArray) -> tuple[Whitener, ...]:
    """One for each noise hypothesis."""
    return tuple(Whitener(hypothesis, shares, clock) for hypothesis in HYPOTHESES)
