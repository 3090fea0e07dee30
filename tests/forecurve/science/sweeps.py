"""Runs and sweeps with known truths for the tests of attribution."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from forecurve.science import Curve, Draws
from forecurve.science.arrays import FloatArray
from forecurve.science.attribution.runs import Run

from .synthetic import sigmoid

LAST = 16_000.0


def normal_draws(mean: float, sd: float, size: int = 500) -> FloatArray:
    """Equally weighted draws whose quantiles are those of a normal."""
    return np.asarray(mean + sd * norm.ppf((np.arange(size) + 0.5) / size))


def known_run(
    A: float,
    se: float = 0.0,
    *,
    B: float = 1.9,
    C_mid: float = 2500.0,
    R0: float = 0.2,
    identified: bool = True,
    decide_at: float | None = None,
    now: float = LAST,
) -> Run:
    """A run whose posterior is normal in A and exact in all else."""
    tops = normal_draws(A, se)
    same = np.ones(len(tops))
    draws = Draws(tops, B * same, C_mid * same, R0 * same)
    return Run("run", draws, first=LAST / 20, now=now, identified=identified, decide_at=decide_at)


def noisy_run(seed: int, A: float = 0.61, C_mid: float = 2500.0, last: float = LAST, points: int = 20) -> Curve:
    """Evaluations with white noise of sd .0035."""
    compute = np.linspace(0, last, points + 1)
    reward = sigmoid(compute, A, 1.9, C_mid, 0.2) + np.random.default_rng(seed).normal(0, 0.0035, points + 1)
    return Curve(compute, np.clip(reward, 0, 1), prompts=1000, samples=16, unit="GPU-hours", name=f"run {seed}")
