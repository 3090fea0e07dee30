"""The noise model's covariance written out, as an oracle beside the filter and the banded solver."""

from __future__ import annotations

import numpy as np

from forecurve.science.arrays import FloatArray
from forecurve.science.curves.wandering import EARLY_SD, NoiseHypothesis


def wandering_covariance(guess: NoiseHypothesis, clock: FloatArray, unit: float) -> FloatArray:
    """Of the wandering part in units of v, (N, N): that of an early regime and the rest know nothing of one another."""
    apart, early = np.abs(clock[:, None] - clock), np.arange(len(clock)) < guess.early
    inside, outside = np.outer(early, early), np.outer(~early, ~early)
    return EARLY_SD**2 / unit * inside * guess.head**apart + guess.eta * outside * guess.rho**apart
