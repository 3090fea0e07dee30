"""Synthetic runs for the tests of the science room."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from scipy.stats import gamma, truncnorm

from forecurve.science import Curve
from forecurve.science.arrays import FloatArray


class StandIn(SimpleNamespace):
    """Stands for a fit: equal to itself alone, as that is."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


def sigmoid(compute: FloatArray, A: float, B: float, C_mid: float, R0: float) -> FloatArray:
    """The model, written down once more so that the tests do not lean on the code."""
    with np.errstate(divide="ignore"):
        return R0 + (A - R0) / (1 + (C_mid / np.asarray(compute, dtype=np.float64)) ** B)


def flat_log_b(log_b: FloatArray) -> FloatArray:
    """Log density of ln B in the flat part of a prior: a normal one, cut to [ln 0.2, ln 10]."""
    ends = (np.log([0.2, 10.0]) - 0.61) / 1.0
    return np.asarray(truncnorm.logpdf(log_b, *ends, loc=0.61, scale=1.0))


def log_rise_of(A: FloatArray, R0: FloatArray) -> FloatArray:
    """Log density of the ceiling given the start in the flat part: uniform, or a gamma law of the log odds gained."""
    ends = np.array([0.0, 1.0])
    log_odds = [np.log((p + 0.01) / (1.01 - p)) for p in (A, R0, ends)]
    gained, most = log_odds[0] - log_odds[1], log_odds[2][1] - log_odds[1]
    slope = 1.02 / ((A + 0.01) * (1.01 - A))
    with np.errstate(divide="ignore"):
        by_odds = gamma.logpdf(gained, 2) - gamma.logcdf(most, 2) + np.log(slope)
        return np.asarray(np.logaddexp(np.log(0.5) + by_odds, np.log(0.5) - np.log(1 - R0)))


def exact_curve(
    A: float = 0.6, B: float = 1.7, C_mid: float = 30.0, R0: float = 0.2, last: float = 200.0, points: int = 30
) -> Curve:
    """Noise-free evaluations, the start included."""
    compute = np.linspace(0, last, points)
    return Curve(compute, sigmoid(compute, A, B, C_mid, R0), prompts=1000, samples=16, unit="GPU-hours")


def noisy_curve(
    seed: int,
    A: float = 0.61,
    B: float = 1.9,
    C_mid: float = 2500.0,
    R0: float = 0.2,
    last: float = 8000.0,
    points: int = 40,
    sd: float = 0.0035,
) -> Curve:
    """White noise on evaluations at a steady cadence, with a measured start."""
    compute = np.linspace(0, last, points + 1)
    rng = np.random.default_rng(seed)
    reward = sigmoid(compute, A, B, C_mid, R0) + rng.normal(0, sd, points + 1)
    return Curve(compute, np.clip(reward, 0, 1), prompts=1000, samples=16, unit="GPU-hours", name=f"run {seed}")
