"""An order of runs for what is drawn, so that the order in which they are given has no say."""

from __future__ import annotations

import numpy as np

from .curve import Curve

Place = tuple[list[float], list[float], str]

_TELLING = 1000  # evaluations that tell runs apart


def place_of(curve: Curve) -> Place:
    """What runs are sorted by: what was measured, whatever the range of rewards and the unit of compute."""
    share = (curve.reward[:_TELLING] - curve.bounds[0]) / curve.width
    return np.round(share, 9).tolist(), curve.compute[:_TELLING].tolist(), curve.name
