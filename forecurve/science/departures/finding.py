"""Looking for a misfit: what one further term, or another curve, says beyond the best sigmoid.

The tests compare the best sigmoid with the best sigmoid + one further term (extension.py): a ramp or step down for a
decline or a collapse, a second logistic step up for two-phase growth, a ramp or step either way for a break. Because
both sides share the noise hypotheses, which include a wandering part, wandering is not mistaken for any of these; it
shows as wider intervals instead.
"""

from __future__ import annotations

from ..posterior.drawing import Posterior
from ..posterior.problem import Problem
from .changes import Changes
from .extension import NullModel
from .fall import fall_in
from .misfit import Misfit
from .other_shape import another_shape

_MIN_POINTS = 6


def find_misfit(problem: Problem, found: Posterior, width: float) -> Misfit | None:
    """The first of collapse or decline, two-phase, break and shape that holds.

    Args:
        problem: the scaled curve.
        found: its posterior, whose nodes contain the best sigmoid.
        width: of the reward's range, for the sizes that are reported.
    """
    if len(problem.compute) < _MIN_POINTS:
        return None
    null = NullModel.of(problem, found)
    changes = Changes.of(problem)
    return fall_in(null, changes, found.cut, width) or another_shape(null, changes, found, width)
