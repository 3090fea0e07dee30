"""What a run gains from now on, under each draw: what advice and its figure read.

The sigmoid's draws at both ends. Where the evaluations make other laws the more probable (`Fit.likelier_law`) those
that no past run speaks for are of all of them: a run that levels off more slowly than a sigmoid, or began later, would
be stopped too soon by one. Below that the sigmoid alone is believed, or what can hardly be told would keep every run
going. Of a run that a misfit makes unsure growth is drawn as much more widely as its interval is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray
from ..values import spread

if TYPE_CHECKING:
    from ..fitting.fit import Fit


def growth(fit: Fit, now: float, compute: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Draws of the curve now, (K,), and of what it gains from there to each compute, (m, K); in the reward's scale."""
    x = np.array([now, *compute])
    curve, other = fit.all_draws.reward_at(x), fit.likelier_law
    if other is not None:
        curve = other.mixed(curve, lambda fit: fit.all_draws.reward_at(x))
    level, gains = curve[0], spread(curve[1:] - curve[0], fit.widening)
    return level, np.clip(level + gains, *fit.curve.bounds) - level
