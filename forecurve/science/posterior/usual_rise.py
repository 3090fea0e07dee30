"""How far a run is likely to rise, before it is known: the density of the ceiling A given the start R0.

Half of it is uniform on [R0, 1]. In the other half RL multiplies the odds of solving a prompt: with odds of
(p + .01) / (1 - p + .01), which are finite at 0 and at 1, they grow by a factor r of density ln r / r^2, a gamma
distribution of shape 2 and scale 1 in ln r, up to what leads from R0 to 1. So the median ceiling
of a run that starts at .04 is .35, of one at .65 .87, and half of the density goes on saying that anything may be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LEAST_HEADROOM = 1e-3
"""Of what is left above R0: keeps the density finite."""
_USUAL = 0.5
_OFF = 0.01


def log_usual_rise(A: Any, R0: Any) -> Any:
    """Log density of A given R0, rewards in [0, 1]; numbers, or arrays of one shape.

    >>> A = np.linspace(0.2, 1.0, 100_001)
    >>> bool(abs(np.exp(log_usual_rise(A, np.full(A.shape, 0.2))).mean() * 0.8 - 1) < 1e-4)
    True
    """
    headroom = np.maximum(1.0 - R0, LEAST_HEADROOM)
    start = (R0 + _OFF) / (headroom + _OFF)
    shrunk = np.minimum(start * (1.0 - A + _OFF) / (A + _OFF), 1.0)  # 1 / r
    least = start * _OFF / (1.0 + _OFF)
    mass = 1.0 - least + least * np.log(least)
    slope = 1.0 / (A + _OFF) + 1.0 / (1.0 - A + _OFF)
    return np.log((1.0 - _USUAL) / headroom - _USUAL * shrunk * np.log(shrunk) * slope / mass)
