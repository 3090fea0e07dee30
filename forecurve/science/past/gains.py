"""How much of a correction is taken: by how it would have helped past forecasts, and how sure that is.

What is taken of expected errors may be more than of a pull to other seeds' ends: an expected error that is none is
small by itself, a pull may be as large as seeds lie apart (docs/decisions/0073-more-is-taken-of-expected-errors.md).
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays import FloatArray


def share_taken(wrong: FloatArray, correction: FloatArray) -> float:
    """P(it helps) - P(it harms): all where past forecasts would clearly have been better for it, none where not.

    Args:
        wrong: what came less what was forecast, of past forecasts, shape (n,), n >= 2.
        correction: what each would have been moved by, told without it, shape (n,).
    """
    gain, error = _gain(wrong, correction)
    if gain <= 0:
        return 0.0
    return math.erf(gain / (math.sqrt(2) * error)) if error else 1.0


def careful_share(wrong: FloatArray, correction: FloatArray) -> float:
    """gain^2 / (gain^2 + se^2), which is less. Args: as `share_taken`."""
    gain, error = _gain(wrong, correction)
    return gain**2 / (gain**2 + error**2) if gain > 0 else 0.0


def _gain(wrong: FloatArray, correction: FloatArray) -> tuple[float, float]:
    """The mean absolute error that it would have saved past forecasts, and its standard error."""
    gain = np.abs(wrong) - np.abs(wrong - correction)
    return float(gain.mean()), float(gain.std(ddof=1)) / math.sqrt(len(gain))
