"""Runs as one another's past: the prior they make, and how forecasts of those that are finished turned out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .. import errors
from ..checks import as_float, check_compute, check_kind, check_share, short, whole_of
from ..curves.alike import check_one_range, check_one_unit
from ..curves.curve import Curve
from ..fitting.fit import Fit, fit
from ..fitting.outcome import predict_ending
from ..past.analogues import Course
from ..past.hindsight import Hindsight, Past, most_alike
from ..past.kin import Kin
from ..past.telling import is_finished
from ..posterior.prior import FLAT, Prior
from ..wording import names_text
from .one_run import past_forecast


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
        check_kind("curves", curves, Sequence, "pass a list of curves", errors.PriorError)
        for at, curve in enumerate(curves):
            check_kind(f"curves[{at}]", curve, Curve, "pass Curve(compute, reward)", errors.PriorError)
        self._kin = Kin(curves)
        self._past: dict[tuple[int, float, Prior], Past | None] = {}

    def __repr__(self) -> str:
        curves = self._kin.curves
        return f"Siblings({len(curves)} runs: {names_text([curve.name for curve in curves])})"

    def prior(
        self,
        at: int | None = None,
        arm: str | None = None,
        *,
        now: float | None = None,
        budget: float | None = None,
    ) -> Prior:
        """See `sibling_prior`: made of all of them or, of a run with a budget, of those that tell of it.

        Args:
            arm: of a run that is not one of them, where seeds of its arm may be.
            now: what a run that is not one of them has spent; needed with a budget.
            budget: what the run is to spend. Those tell of it that have spent 0.9 of that, or half of it and twice what
                the run has, and once the run has spent a quarter of it also those beside it: see `least_to_tell`.

        Raises:
            PriorError: a place, compute or budget that cannot be.
        """
        at = None if at is None else self._place(at)
        if budget is None:
            return self._kin.prior(at, arm)
        check_compute("budget", budget, errors.PriorError, "give compute in the unit of the runs")
        now = now if at is None else self._kin.curves[at].now
        if now is None:
            raise errors.PriorError("now", now, "what tells of a run is what is ahead of it", "give what it has spent")
        check_compute("now", now, errors.PriorError, "give what the run has spent, in the unit of the runs")
        return self._kin.prior(at, arm, now=as_float(now), budget=as_float(budget))

    def fit(self, at: int, budget: float | None = None) -> Fit:
        """Of one of the runs with the others, or those that tell of a run with this budget, as its prior; without a
        prior where they tell nothing.

        Raises:
            PriorError: a place or a budget that cannot be.
        """
        at = self._place(at)
        prior = self.prior(at, budget=budget)
        return self._kin.alone[at] if prior == FLAT else fit(self._kin.curves[at], prior=prior)

    def hindsight(
        self,
        forecast: Fit,
        budget: float,
        at: int | None = None,
        *,
        arm: str | None = None,
        share: float | None = None,
    ) -> Hindsight | None:
        """How forecasts of those that have spent at least 0.9 of this budget turned out, made at the same share of it.

        None where nothing is left of the budget.

        Args:
            arm: of a run whose curve does not say it.
            share: at which they are made, above 0 and below 1, where it need not be exactly the same; what is made once
                is kept.

        Raises:
            PriorError: the run has another unit of compute, or range of rewards, than they have; a place, budget or
                share that cannot be.
        """
        check_kind("forecast", forecast, Fit, "pass fit(curve)", errors.PriorError)
        curve, at = forecast.curve, None if at is None else self._place(at)
        check_compute("budget", budget, errors.PriorError, f"give compute in {curve.unit}")
        if share is not None:
            check_share("share", share, errors.PriorError)
        budget = as_float(budget)
        self._check_alike(curve)
        if curve.now >= budget:
            return None
        course = Course.of(curve)
        curves = self._kin.curves
        finished = [other for other in self._kin.others(at) if is_finished(curves[other].now, budget)]
        finished, mates = self._kin.past_like(finished, arm or curve.arm)
        asked, _ = most_alike([Course.of(curves[other]) for other in finished], course)
        share = curve.now / budget if share is None else as_float(share)
        told = [self._told(finished[place], share, mates, but=at) for place in asked]
        known = [one for one in told if one is not None]
        own = self._kin.mates_ended(at, budget, arm or curve.arm)
        further = self._kin.mates_ahead(at, curve.now, budget, arm or curve.arm)
        return Hindsight.of(
            known,
            predict_ending(forecast, budget),
            course=course,
            width=curve.width,
            mates=own,
            ahead=[predict_ending(self._kin.alone[one], budget) for one in further],
        )

    def _place(self, at: object) -> int:
        """The place of one of the runs."""
        runs = len(self._kin.curves)
        if not runs:
            raise errors.PriorError("at", short(at), "there are no runs here", "leave it out")
        way_out = "give the place of a run among them, or leave it out for one that is not"
        return whole_of("at", at, errors.PriorError, way_out, most=runs - 1)

    def _check_alike(self, curve: Curve) -> None:
        """That what past runs gained can be told of this one: it is counted in units of reward and of compute."""
        every = [curve, *self._kin.curves]
        who = "a run and its siblings must share one"
        check_one_unit(every, errors.PriorError, f"{who} unit of compute", "convert them first")
        check_one_range(every, errors.PriorError, f"{who} range of rewards", "bring them to one scale")

    def _told(self, at: int, share: float, mates: bool, but: int | None) -> Past | None:
        """What would have been said of one of them; `but` is the run that is asked about."""
        curve = self._kin.curves[at]
        key = at, share, self._kin.prior(at, mates=mates, now=share * curve.now, budget=curve.now)
        if key not in self._past:
            self._past[key] = past_forecast(curve, share, key[2])
        told = self._past[key]
        ended = self._kin.mates_ended(at, curve.now, but=but)
        return told and replace(told, run=str(at), mates=ended)  # names need not be distinct
