"""Runs as one another's past: the prior they make, and how forecasts of those that are finished turned out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from .analogues import Course
from .arms import past_like
from .backtesting import distinct_runs, other_runs, past_forecast
from .curve import Curve
from .family import sibling_prior
from .fitting import Fit, fit
from .hindsight import FINISHED_AT, Hindsight, Past, most_alike
from .outcome import predict_ending
from .prior import FLAT, Prior


class Siblings:
    """What runs tell of a further one, or of one another.

        siblings = Siblings(finished)
        forecast = fit(curve, prior=siblings.prior())
        advise(forecast, budget=16_000, hindsight=siblings.hindsight(forecast, 16_000))

    Args:
        curves: runs in one unit and metric, as far as they went. Copies of one run count once.

    `at`, wherever it is asked for, is the place among them of the run that is asked about, which tells nothing of
    itself; None for a run that is not one of them.
    """

    def __init__(self, curves: Sequence[Curve]):
        self._curves = curves
        self._priors: dict[tuple[int | None, str | None], Prior] = {}
        self._past: dict[tuple[int, float, bool], Past | None] = {}

    def prior(self, at: int | None = None, arm: str | None = None) -> Prior:
        """See `sibling_prior`. `arm`: of a run that is not one of them, where seeds of its arm may be."""
        arm = arm if at is None else self._curves[at].arm
        if (at, arm) not in self._priors:
            self._priors[at, arm] = self._prior_of(self._others(at), arm)
        return self._priors[at, arm]

    def fit(self, at: int) -> Fit:
        """Of one of the runs with the others as its prior; without a prior where they tell nothing."""
        prior = self.prior(at)
        return fit(self._curves[at], prior=prior) if prior.informative else self._flat[at]

    def hindsight(self, forecast: Fit, budget: float, at: int | None = None) -> Hindsight | None:
        """How forecasts of those that have spent at least 0.9 of this budget turned out, made at the same share of it.

        None where nothing is left of the budget.
        """
        curve = forecast.curve
        if curve.now >= budget:
            return None
        course = _course(curve)
        finished = [other for other in self._others(at) if self._curves[other].now >= FINISHED_AT * budget]
        finished, mates = past_like([one.arm for one in self._curves], finished, curve.arm)
        asked, _ = most_alike([_course(self._curves[other]) for other in finished], course)
        told = [self._told(finished[place], curve.now / budget, mates) for place in asked]
        known = [one for one in told if one is not None]
        return Hindsight.of(known, predict_ending(forecast, budget), course=course, width=curve.width)

    @cached_property
    def _flat(self) -> list[Fit]:
        return [fit(curve, prior=FLAT) for curve in self._curves]

    @cached_property
    def _apart(self) -> list[list[int]]:
        return other_runs(self._curves)

    def _others(self, at: int | None) -> list[int]:
        return distinct_runs(self._curves) if at is None else self._apart[at]

    def _told(self, at: int, share: float, mates: bool) -> Past | None:
        key = at, share, mates
        if key not in self._past:
            prior = self.prior(at) if mates else self._prior_of(self._other_arms(at), self._curves[at].arm)
            told = past_forecast(self._curves[at], share, prior)
            self._past[key] = told and replace(told, run=str(at))  # names need not be distinct
        return self._past[key]

    def _other_arms(self, at: int) -> list[int]:
        arm = self._curves[at].arm
        return [other for other in self._others(at) if arm is None or self._curves[other].arm != arm]

    def _prior_of(self, others: Sequence[int], arm: str | None) -> Prior:
        return sibling_prior([self._flat[other] for other in others], arm)


def _course(curve: Curve) -> Course:
    return Course(curve.compute, curve.reward)
