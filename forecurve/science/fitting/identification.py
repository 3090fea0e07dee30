"""How much of what is known of each parameter the data tell, not the prior."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray
from ..posterior.prior import USUAL_LOG_B, Prior
from ..posterior.sigmoid import reward_at

if TYPE_CHECKING:
    from .fit import Fit

_LEAST_SD = 0.03  # a ceiling known within +-0.05 counts as known, however little headroom there was


def identified_shares(fit: Fit) -> dict[str, float]:
    """1 - posterior variance / variance without the data's shape, for each parameter."""
    found, prior, box = fit.posterior, fit.setting.prior, fit.setting.box
    ends = fit.curve.compute[[0, -1]]
    bottom, top = reward_at(ends, found.A, found.B, found.C_mid, found.R0).mean(axis=1)
    reference = {
        "A": float(unknown_ceiling(np.array(top), prior)),
        "B": _smaller(USUAL_LOG_B[1], prior.log_B),
        "C_mid": _smaller((box.log_mid[1] - box.log_mid[0]) / np.sqrt(12), prior.log_C_mid),
        "R0": max(bottom / np.sqrt(12), _LEAST_SD),
    }
    values = {"A": found.A, "B": np.log(found.B), "C_mid": np.log(found.C_mid), "R0": found.R0}
    shares = {name: 1 - float(np.var(values[name])) / reference[name] ** 2 for name in values}
    return {name: float(np.clip(share, 0.0, 1.0)) for name, share in shares.items()}


def unknown_ceiling(level: FloatArray, prior: Prior) -> FloatArray:
    """The sd of A without the data's shape, of a run that is at this level or that; in a range of width 1."""
    flat = np.maximum((1 - level) / np.sqrt(12), _LEAST_SD)
    return np.asarray(flat if prior.A is None else np.minimum(flat, prior.A[1]))


def _smaller(flat: float, pair: tuple[float, float] | None) -> float:
    return float(flat) if pair is None else float(min(flat, pair[1]))
