"""A late start: a rise that does not begin with the run.

Where rewards are rare at first, a format has to be learned or the learning rate warms up, the pass rate stands still
until some compute s and rises from there on,

    R(C) = R0 + (A - R0) g(C - s),    g(C) = 0 for C <= 0,    B >= 1.

A sigmoid counted from 0 describes that by a large exponent, or by an early regime of which it takes no notice, and ends
too low: a steep rise is soon over. How probable a late start is, is asked where one of the two shows. Its evidence is
the integral over (A, B, C_mid, R0) as ever, and over s, uniform on the run as far as it is asked, by the profile of
least squares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray
from ..posterior.drawing import Posterior
from ..posterior.integral import Table, integrate, log_sum
from ..posterior.point import search
from ..posterior.prior import box_of
from ..posterior.problem import Problem
from ..posterior.sigmoid import log_compute
from ..wording import compute_text
from .misfit import Misfit

P_LATE_START = 0.1
"""The probability of a late start before any evaluation."""
_LEAST_POINTS = 12
_BEFORE, _AFTER = 3, 6  # evaluations at least before and behind it
_LATE = 0.1  # of the present compute: what begins before is hardly late
_STEEP = 2.5  # exponents from there on, or
_EARLY = 0.2  # an early regime so probable, are asked
_PLACES = 10
_FINER = 6
_PROMISING = 1.0  # log likelihood of the best start over none
_SURE = float(np.log(20.0))
_QUANTILES = (1 / 6, 1 / 2, 5 / 6)  # of s, each of which stands for a third


@dataclass(frozen=True, eq=False)
class LateStart:
    """The evaluations as a run that began to rise late.

    Attributes:
        begins: compute until which it stood still: three quantiles.
        problems, tables: of either.
        log_spread: log of what is left of the range of s, as a share of what it was beforehand.
    """

    begins: tuple[float, ...]
    problems: tuple[Problem, ...]
    tables: tuple[Table, ...]
    log_spread: float

    @property
    def log_evidence(self) -> float:
        """Of a late start, wherever it is."""
        each = [log_sum(table.masses.nodes) for table in self.tables]
        return float(np.logaddexp.reduce(each)) - float(np.log(len(each))) + self.log_spread

    @property
    def middle(self) -> float:
        """The median of where it began."""
        return self.begins[1]


def late_start(posterior: Posterior, problem: Problem) -> LateStart | None:
    """None where nothing speaks for one.

    Args:
        posterior: of a sigmoid that begins with the run.
        problem: its evaluations.
    """
    suspicious = float(np.median(posterior.B)) >= _STEEP or sum(posterior.early.values()) >= _EARLY
    if not suspicious or not _long_enough(problem.compute):
        return None
    places, likelihood = problem.once("late start", lambda: _profile(problem))
    if likelihood.max() < _PROMISING:
        return None
    weight = np.exp(likelihood - likelihood.max())
    steps = np.diff(places) * (weight[1:] + weight[:-1]) / 2
    reached = np.concatenate([[0.0], np.cumsum(steps)]) / steps.sum()
    begins = tuple(float(at) for at in np.interp(_QUANTILES, reached, places))
    still = problem.compute <= begins[0]
    if (problem.reward > problem.reward[still].max(initial=-np.inf)).sum() < _AFTER:  # of a rise too little is seen
        return None
    problems = tuple(begun_at(problem, at) for at in begins)
    tables = tuple(integrate(one) for one in problems)
    return LateStart(begins, problems, tables, float(np.log(steps.sum() / (places[-1] - places[0]))))


def _long_enough(compute: FloatArray) -> bool:
    """Whether there are evaluations enough, before a late start and behind it."""
    return len(compute) >= _LEAST_POINTS and np.searchsorted(compute, _LATE * compute[-1]) < len(compute) - 1 - _AFTER


def begins_late(late: LateStart, sigmoid: float, width: float) -> Misfit | None:
    """A break where the run began, where nothing but a late start describes it: odds of 20 to 1.

    Args:
        sigmoid: log evidence of one that begins with the run.
        width: of the reward's range.
    """
    if late.log_evidence - sigmoid + float(np.log(P_LATE_START / (1 - P_LATE_START))) < _SURE:
        return None
    since = late.begins[0]  # the earliest that is likely, so that nothing of the rise is cut off
    problem = late.problems[0]
    size = float(problem.reward[-1] - problem.reward[problem.compute <= since].mean())
    text = f"The curve stands still at first and begins to rise about {compute_text(late.middle)}"
    return Misfit("break", since, size * width, text)


def begun_at(problem: Problem, begins: float) -> Problem:
    """The same evaluations, with compute counted from there, and exponents of 1 and more.

    With a smaller one a rise begins with a jump, as after an early regime.
    """
    begun = replace(problem, setting=replace(problem.setting, begins=begins))
    box = box_of(problem.setting.prior, begun.since)
    box = replace(box, log_b=(max(box.log_b[0], 0.0), box.log_b[1]))
    return replace(begun, log_c=log_compute(begun.since), setting=replace(begun.setting, box=box))


def _profile(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Places at which a run may have begun, in order, and the log likelihood of its least-squares curve over that of
    one which begins at 0; white noise."""
    compute, size = problem.compute, len(problem.compute)
    none = search(problem.log_c, problem.reward)[4]

    def asked(places: FloatArray) -> FloatArray:
        squares = [search(log_compute(np.maximum(compute - at, 0.0)), problem.reward)[4] for at in places]
        return np.asarray(-size / 2 * np.log(np.maximum(squares, 1e-30) / max(none, 1e-30)))

    first = max(_BEFORE, int(np.searchsorted(compute, _LATE * compute[-1])))
    places = np.interp(np.linspace(first, size - 1 - _AFTER, _PLACES), np.arange(size), compute)
    likelihood = asked(places)
    best = int(likelihood.argmax())
    within = np.linspace(places[max(best - 1, 0)], places[min(best + 1, _PLACES - 1)], _FINER + 2)[1:-1]
    finer = within[~np.isin(within, places)]
    places, likelihood = np.append(places, finer), np.append(likelihood, asked(finer))
    order = np.argsort(places)
    return places[order], likelihood[order]
