"""A run's level from now on, the pass rate without noise, as the forecast of its end has it.

Each draw of the posterior goes on along its curve, the sigmoid's or another law's (`other_rise`), leaves it as far as
runs leave theirs (`drift`), and gains as much more or less than the others as a misfit asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray
from ..departures.drift import drift
from ..values import spread

if TYPE_CHECKING:
    from .fit import Fit


def levels(fit: Fit, compute: FloatArray) -> FloatArray:
    """Draws of the level at each compute from now on, (m, K); not cut off at the ends of the range of rewards."""
    here = on_curves(fit, np.array([fit.curve.now]))[0]
    return np.asarray(here + spread(on_curves(fit, compute) + drift(fit, compute) - here, fit.widening))


def on_curves(fit: Fit, compute: FloatArray) -> FloatArray:
    """Draws of the curve, the sigmoid's or another law's, (m, K)."""
    on_curve, other = fit.all_draws.reward_at(compute), fit.other_rise
    return on_curve if other is None else other.mixed(on_curve, lambda law: law.all_draws.reward_at(compute))
