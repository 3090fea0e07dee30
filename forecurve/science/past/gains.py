"""How much of a correction is taken: as much as it would have helped past forecasts, and as sure as that is."""

from __future__ import annotations

import math

import numpy as np

from ..arrays import FloatArray


def share_taken(wrong: FloatArray, correction: FloatArray) -> float:
    """gain^2 / (gain^2 + se^2), with gain the mean absolute error that it would have saved past forecasts and se its
    standard error: all where they would clearly have been better for it, none where not.

    Args:
        wrong: what came less what was forecast, of past forecasts, shape (n,), n >= 2.
        correction: what each would have been moved by, told without it, shape (n,).
    """
    gain = np.abs(wrong) - np.abs(wrong - correction)
    mean, error = float(gain.mean()), float(gain.std(ddof=1)) / math.sqrt(len(gain))
    return mean**2 / (mean**2 + error**2) if mean > 0 else 0.0
