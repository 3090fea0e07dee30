"""Looking for a misfit: what one further term, or another curve, says beyond the best sigmoid.

The tests compare the best sigmoid with the best sigmoid + one further term (extension.py): a ramp or step down for a
decline or a collapse, a second logistic step up for two-phase growth, a ramp or step either way for a break. Because
both sides share the noise hypotheses, which include a wandering part, wandering is not mistaken for any of these; it
shows as wider intervals instead.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..posterior.drawing import Posterior
from ..posterior.problem import Problem
from .changes import Changes
from .extension import NullModel
from .fall import fall_in
from .misfit import MOST_WIDENING, Misfit
from .other_shape import another_shape
from .residuals import hanging

_MIN_POINTS = 6


def find_misfit(problem: Problem, found: Posterior, width: float) -> Misfit | None:
    """The first of collapse or decline, two-phase, break, shape and residuals that holds.

    A `shape` whose residuals hang together as well is as much less sure as the worse of the two says.

    Args:
        problem: the scaled curve.
        found: its posterior, whose nodes contain the best sigmoid.
        width: of the reward's range, for the sizes that are reported.
    """
    if len(problem.compute) < _MIN_POINTS:
        return None
    null = NullModel.of(problem, found)
    changes = Changes.of(problem)
    changed = fall_in(null, changes, found.cut, width)
    changed = changed or another_shape(null, changes, found, width)
    if changed is not None and changed.withheld:
        return changed
    residuals = _residuals(null)
    if changed is None or residuals is None:
        return changed or residuals
    return replace(changed, widening=max(changed.widening or 1.0, residuals.widening or 1.0))


def _residuals(null: NullModel) -> Misfit | None:
    found = hanging(null)
    if found is None:
        return None
    lag, wider = found
    text = f"Residuals hang together along the curve (correlation {lag:.2f})"
    return Misfit("residuals", None, lag, text, float(np.clip(wider, 1.0, MOST_WIDENING)))
