"""A sweep whose truth is known: "tortoise" wins at the end, "hare" leads over the first third."""

from __future__ import annotations

import numpy as np

from forecurve.science import Curve
from forecurve.science.simulator import Sweep, Track

from ..synthetic import sigmoid

GAP, HORIZON = 400.0, 16_000.0
COMPUTE = np.linspace(0, HORIZON, 41)


def _track(name: str, A: float, B: float, C_mid: float) -> Track:
    """Noise-free, with the noise that its counts promise left out."""
    reward = sigmoid(COMPUTE, A, B, C_mid, 0.2)
    return Track(Curve(COMPUTE, reward, name=name, prompts=1000, samples=16), float(reward[-1]))


CROSSING = Sweep(
    (
        _track("hare", 0.58, 1.9, 1500.0),
        _track("tortoise", 0.72, 1.7, 4000.0),
        _track("snail", 0.45, 1.8, 3000.0),
        _track("other", 0.55, 1.8, 2000.0),
    ),
    HORIZON,
)
