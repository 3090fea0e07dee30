"""Residuals that hang together more than the noise model explains, and how much wider a level is then known."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from ..arrays import FloatArray
from .extension import NullModel

_RUNS_POINTS = 12
_RUNS_P = 1e-3
_LEAST_LAG = 0.4
_NEXT_TO_NONE = 3.0  # residuals of a computed curve: the noise that the fit allows for is so many times theirs


def hanging(null: NullModel) -> tuple[float, float] | None:
    """Wald and Wolfowitz's runs test on residuals that the noise model has whitened: what it does not explain.

    The interval of a level that is read from evaluations with lag-1 correlation r is sqrt((1 + r) / (1 - r)) times as
    wide as from independent ones.

    Returns:
        (r of the raw residuals after an early regime, that factor over what the best noise hypothesis already allows
        for), or None where nothing is left to explain.
    """
    whitened = null.whitened_residual()
    size = len(whitened)
    if size < _RUNS_POINTS or null.excess_noise() > _NEXT_TO_NONE or _chance_of_runs(whitened) >= _RUNS_P:
        return None
    lag = _lag_correlation(null.residual()[null.early :])
    return None if lag < _LEAST_LAG else (lag, _inflation(lag) / _inflation(null.explained_correlation()))


def _chance_of_runs(values: FloatArray) -> float:
    """P(so few changes of sign about the median) for independent values."""
    signs = values > np.median(values)
    above, below = int(signs.sum()), int((~signs).sum())
    runs = 1 + int((signs[1:] != signs[:-1]).sum())
    mean = 2 * above * below / len(values) + 1
    variance = (mean - 1) * (mean - 2) / (len(values) - 1)
    return float(ndtr((runs + 0.5 - mean) / np.sqrt(variance))) if variance > 0 else 1.0


def _lag_correlation(values: FloatArray) -> float:
    """Of neighbours; 0 where all are the same."""
    centred = values - values.mean()
    total = float(centred @ centred)
    return float(centred[1:] @ centred[:-1] / total) if total > 0 else 0.0


def _inflation(correlation: float) -> float:
    bounded = min(max(correlation, 0.0), 0.95)
    return float(np.sqrt((1 + bounded) / (1 - bounded)))
