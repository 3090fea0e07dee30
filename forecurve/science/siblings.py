"""Runs of one file as one another's past: their prior, and how forecasts of those that are finished turned out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from .analogues import Course
from .backtesting import other_runs, past_forecast
from .curve import Curve
from .family import sibling_prior
from .fitting import Fit, fit
from .hindsight import Hindsight, Past
from .outcome import predict_ending
from .prior import FLAT, Prior

FINISHED = 0.9
"""A run that has spent so much of the budget tells how another ends there; one that stopped earlier does not."""


class Siblings:
    """Runs in one unit and metric.

    Args:
        curves: as far as they went.

    Copies of one run count once.
    """

    def __init__(self, curves: Sequence[Curve]):
        self._curves = curves
        self._past: dict[tuple[int, float], Past | None] = {}
        self._priors: dict[int, Prior] = {}

    @cached_property
    def _others(self) -> list[list[int]]:
        return other_runs(self._curves)

    @cached_property
    def _flat(self) -> list[Fit]:
        return [fit(curve, prior=FLAT) for curve in self._curves]

    def prior(self, at: int) -> Prior:
        """Of one run: what the others tell."""
        if at not in self._priors:
            self._priors[at] = sibling_prior([self._flat[other] for other in self._others[at]])
        return self._priors[at]

    def fit(self, at: int) -> Fit:
        """Of one run, with the others as its prior; without a prior where they tell nothing."""
        prior = self.prior(at)
        return fit(self._curves[at], prior=prior) if prior.informative else self._flat[at]

    def hindsight(self, fitted: Fit, at: int, budget: float) -> Hindsight | None:
        """How forecasts of the finished others at the same share of the budget turned out, for one run.

        None where there is no rest of the budget to forecast.
        """
        curve = fitted.curve
        if curve.now >= budget:
            return None
        share = curve.now / budget
        finished = [other for other in self._others[at] if self._curves[other].now >= FINISHED * budget]
        told = [self._told(other, share) for other in finished]
        return Hindsight.of(
            [one for one in told if one is not None],
            predict_ending(fitted, budget),
            course=Course(curve.compute, curve.reward),
            width=curve.width,
        )

    def _told(self, at: int, share: float) -> Past | None:
        if (at, share) not in self._past:
            self._past[at, share] = past_forecast(self._curves[at], share, self.prior(at))
        return self._past[at, share]
