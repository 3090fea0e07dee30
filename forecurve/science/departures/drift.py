"""Drift: how far runs leave their sigmoid, where too few past runs tell.

A sigmoid describes a run, it does not bind it: a second rise, a curriculum, a verifier that is learned to be pleased.
Past runs tell how far their like leaves its curves, in the prior's own spread and in what their forecasts got wrong
(`hindsight`). Where fewer than 3 of them tell, or the run is not like them, a curve is believed but not that a run
stays on it: to those draws at a later compute C comes

    width of the range  x  0.02 ln(C / now)  x  t,     t ~ Student-t with 2 degrees of freedom,

for an e-fold of compute that is less than .016 half of the time, and large now and then. `Fit.predict` is the curve and
has none of it; evaluations and their means, which can be seen, have it (docs/decisions/0033).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..posterior.evenly import Axis, uniforms
from ..posterior.prior import TELLING_RUNS, Prior

if TYPE_CHECKING:
    from ..fitting.fit import Fit

DRIFT_SD = 0.02
"""Of the range of rewards, for an e-fold of compute. Runs leave their curve on a slope, not as a walk would."""


def drift(fit: Fit, compute: FloatArray) -> FloatArray:
    """Draws of how far the run will have left its curve at each compute, (m, K): 0 up to now, and where it is told."""
    size = len(fit.posterior.A)
    return np.asarray(_scale(fit, compute)[:, None] * np.where(untold(fit), _student_t(size), 0.0))


def _scale(fit: Fit, compute: FloatArray) -> FloatArray:
    """What a draw of Student's t is times, (m,)."""
    return np.asarray(fit.curve.width * DRIFT_SD * np.log(np.maximum(compute / fit.curve.now, 1.0)))


def _student_t(size: int) -> FloatArray:
    """Its quantiles with 2 degrees of freedom, evenly spread, (size,)."""
    u = uniforms(Axis.DRIFT, size)
    return np.asarray((2 * u - 1) / np.sqrt(2 * u * (1 - u)))


def untold(fit: Fit) -> BoolArray:
    """Which draws nothing tells how such a run goes on, (K,).

    Past runs do where the run is one of theirs. That it is not, is what the flat part of their prior stands for: the
    more the run is unlike them, the more draws are of that part.
    """
    told = past_runs_tell(fit.prior)
    return ~fit.posterior.informed if told else np.ones(len(fit.posterior.A), dtype=bool)


def past_runs_tell(prior: Prior) -> bool:
    """Whether how runs go is in a prior. Of 2 past runs it is not: from 3 on their forecasts tell too (`hindsight`)."""
    return prior.informative and (prior.runs is None or prior.runs >= TELLING_RUNS)
