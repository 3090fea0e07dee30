"""What came after a change, forecast as a run of its own.

One sigmoid does not describe both sides of a change, but what came after it is a curve again: it starts where the run
fell to, its compute counts from the change, and growth from there is a recovery that has begun. One that has not begun
is not in that forecast: a sigmoid rises gradually, a recovery may set in at once. How long a state lasts is unknown up
to its very scale; with a prior that is the same in every unit of time, one that has lasted d ends within the next r
with probability r / (d + r) (Gott 1993, Nature 363, 315; for k evaluations without and m to come Laplace's rule of
succession, m / (k + m + 1)). It does not depend on how often the run is evaluated.

Of a run that lost nearly all reward half is believed beforehand on "for good" (`Change.for_good`): where nothing is
solved no group of answers differs in reward, and a policy gradient has nothing to climb.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from forecurve.limits import LEAST_COMPUTE

from ..checks import MIN_POINTS
from ..curves.curve import Curve
from ..posterior.prior import Prior

if TYPE_CHECKING:
    from .fit import Fit

LAST = 3
_NEARLY_ALL = 0.1  # at most so much is left of the reward of the last three evaluations before
_FOR_GOOD = 0.5


def p_lasts(lasted: float, rest: float, for_good: float = 0.0) -> float:
    """P(a state that has lasted so long outlasts the rest), for a duration of unknown scale.

    Args:
        lasted, rest: in one unit.
        for_good: P(it never ends), beforehand.

    >>> p_lasts(9.0, 1.0), p_lasts(1.0, 9.0, for_good=0.5)
    (0.9, 0.55)
    """
    return for_good + (1 - for_good) * (lasted / (lasted + rest) if lasted > 0 else 0.0)


def sure_from(since: float, end: float, sure: float, for_good: float = 0.0) -> float:
    """The compute from which a state that began at `since` is so sure to last to the end; `for_good` as in `p_lasts`.

    >>> sure_from(2.0, 12.0, 0.9), sure_from(2.0, 12.0, 0.9, for_good=0.5)
    (11.0, 10.0)
    """
    return since + max(sure - for_good, 0.0) / (1 - for_good) * (end - since)


@dataclass(frozen=True, eq=False)
class Change:
    """Where a run left its curve, and what was before and after it; each is forecast once, when it is asked for.

    Attributes:
        curve: the whole.
        since: compute of the last evaluation before the change.
        prior: under which the run was forecast.
    """

    curve: Curve
    since: float
    prior: Prior

    @cached_property
    def later(self) -> Fit | None:
        """The forecast of what came after it under the flat prior, its compute counted from there; None while there are
        fewer than 3 evaluations after it, or no compute that can be told from none."""
        from .fit import fit

        curve = self.curve
        if curve.points - self.before < MIN_POINTS or curve.compute[self.before] - self.since < LEAST_COMPUTE:
            return None
        return fit(curve.part(slice(self.before, None), self.since))

    @cached_property
    def earlier(self) -> Fit | None:
        """The forecast as it stood before; None where there were fewer than 3 evaluations."""
        from .fit import fit

        return fit(self.curve.until(self.since), prior=self.prior) if self.before >= MIN_POINTS else None

    @property
    def for_good(self) -> float:
        """P(what came after it never ends), beforehand: one half where nearly all reward was lost, else 0."""
        parts = np.split(self.curve.reward - self.curve.bounds[0], [self.before])
        had, left = (float(part[-LAST:].mean()) for part in parts)
        return _FOR_GOOD if left <= _NEARLY_ALL * had else 0.0

    @property
    def before(self) -> int:
        """How many evaluations lie before it."""
        return int(np.searchsorted(self.curve.compute, self.since, side="right"))

    def last_level(self) -> tuple[float, float]:
        """The mean of the last evaluations after it, three at most, and the variance of one of them, from how far
        neighbours lie apart: a fall that goes on is part of it."""
        reward = self.curve.reward[self.before :]
        return float(reward[-LAST:].mean()), float((np.diff(reward) ** 2).mean()) / 2


def falls_on(later: Fit) -> bool:
    """Whether what came after a change still falls: a run that goes down for long has no level yet but its last one."""
    return later.misfit_detail is not None and later.misfit_detail.fallen
