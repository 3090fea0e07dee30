"""What came after a change, forecast as a run of its own.

One sigmoid does not describe both sides of a change, but what came after it is a curve again: it starts where the run
fell to, its compute counts from the change, and growth from there is a recovery that has begun. One that has not begun
is not in that forecast: a sigmoid rises gradually, a recovery may set in at once. How long a state lasts is unknown up
to its very scale; with a prior that is the same in every unit of time, one that has lasted d ends within the next r
with probability r / (d + r) (Gott 1993, Nature 363, 315; for k evaluations without and m to come Laplace's rule of
succession, m / (k + m + 1)). It does not depend on how often the run is evaluated, and has no constant to tune.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecurve.limits import LEAST_COMPUTE

from ..checks import MIN_POINTS
from ..curves.curve import Curve

if TYPE_CHECKING:
    from .fit import Fit


LAST = 3


def p_lasts(lasted: float, rest: float) -> float:
    """P(a state that has lasted so long outlasts the rest), for a duration of unknown scale.

    >>> p_lasts(9.0, 1.0)
    0.9
    """
    return lasted / (lasted + rest) if lasted > 0 else 0.0


def sure_from(since: float, end: float, sure: float) -> float:
    """The compute from which a state that began at `since` is so sure to last to the end.

    >>> sure_from(2.0, 12.0, 0.9)
    11.0
    """
    return since + sure * (end - since)


def aftermath(fit: Fit, since: float) -> Fit | None:
    """The forecast of what came after `since` under the flat prior, its compute counted from there.

    Args:
        fit: of the whole run.
        since: compute of the last evaluation before the change.

    Returns:
        None while there are fewer than 3 evaluations after it, or no compute that can be told from none.
    """
    from .fit import fit as refit

    later = _after(fit.curve, since)
    return None if later is None else refit(later)


def falls_on(later: Fit) -> bool:
    """Whether what came after a change still falls: a run that goes down for long has no level yet but its last one."""
    return later.misfit_detail is not None and later.misfit_detail.fallen


def last_level(curve: Curve, since: float) -> tuple[float, float]:
    """The mean of the last evaluations after a change, three at most, and the variance of one of them, from how far
    neighbours lie apart: a fall that goes on is part of it."""
    reward = curve.reward[int(np.searchsorted(curve.compute, since, side="right")) :]
    return float(reward[-LAST:].mean()), float((np.diff(reward) ** 2).mean()) / 2


def _after(curve: Curve, since: float) -> Curve | None:
    first = int(np.searchsorted(curve.compute, since, side="right"))
    if curve.points - first < MIN_POINTS or curve.compute[first] - since < LEAST_COMPUTE:
        return None
    return curve.part(slice(first, None), since)
