"""What is to be said of a run from its curve: forecast, freeze, watch, advice. No database, no clock.

points ──► drop what goes back in compute ──► fit by itself ──► with past runs as prior ──► Said + advice
                     │                         │
                     │                         └─ far enough and no misfit ──► frozen forecast
                     └─ after the frozen forecast ──► watch ──► WARN, ALERT or fine
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forecurve.science import Advice, Fit, FrozenForecast, Revision, Watch, fit, freeze, revision, watch
from server.alerts.service import Settled
from server.forecasts.fitted import curve_of
from server.forecasts.saying import Subject, informed, json_safe, say, to_fit
from server.forecasts.service import Said
from server.metrics.curve import INHERITED, Point

from . import fallen


@dataclass(frozen=True)
class FreezeRule:
    """The forecast is frozen at the first evaluation past `fraction` of the budget that has `min_points` up to it."""

    fraction: float
    min_points: int


@dataclass(frozen=True)
class Watched(Subject):
    """A run as its assessment sees it.

    `frozen` is the state of its frozen forecast and the compute it was made at; `settled` is up to where its falls
    below the forecast were resolved; `earlier` is what the watch said of it before, where that is known: what is said
    now is the same without it.
    """

    frozen: tuple[dict[str, Any], float] | None = None
    settled: Settled | None = None
    earlier: Watch | None = None


@dataclass(frozen=True)
class Alarm:
    """The run fell below its frozen forecast, and is `back_since` then, if it is; its last evaluation may be `above`.
    `evidence` is JSON; compute in the run's unit."""

    level: str
    title: str
    text: str
    since_compute: float | None
    back_since: float | None
    at_compute: float
    evidence: dict[str, Any]
    above: bool = False


@dataclass(frozen=True)
class Assessment:
    """What a refit found.

    `to_freeze` is the forecast to freeze now, and may be `said` itself. `revised` is there only for a run that never
    fell: what a fall does to the forecast is no slow change. `verdict` is the watch's, where it had something to judge.
    """

    said: Said
    advice: Advice
    to_freeze: Said | None
    alarm: Alarm | None
    revised: Revision | None
    verdict: Watch | None

    @property
    def has_no_fall(self) -> bool:
        """Neither the watch nor the fit shows one."""
        found = None if self.advice.fit is None else self.advice.fit.misfit_detail
        return self.alarm is None and (found is None or not found.fallen)


def assess(subject: Watched, rule: FreezeRule) -> Assessment | None:
    """Fit the curve and judge it; None while there is too little to say anything.

    Raises:
        CurveError: the evaluations are no curve (e.g. rewards out of range, or compute that does not rise).
    """
    points = to_fit(subject.points)
    if points is None:
        return None
    alone = fit(curve_of(subject.name, subject.unit, points))
    fitted = informed(alone, subject)
    said, advice = say(subject, points, fitted)
    to_freeze = _to_freeze(subject, points, alone, rule) if subject.frozen is None else None
    frozen = (to_freeze.state, to_freeze.at_compute) if to_freeze is not None else subject.frozen
    if to_freeze is not None and to_freeze.points == said.points and fitted is alone:
        said = to_freeze
    judged = _judged(subject, points, frozen)
    verdict = None if frozen is None or not judged else _verdict(subject, judged, frozen[0], alone)
    alarm = None if verdict is None else _alarm(subject, judged, verdict)
    fell = alarm is not None or subject.settled is not None
    revised = _revised(subject, alone, frozen) if not fell and to_freeze is None else None
    return Assessment(said, advice, to_freeze, alarm, revised, verdict)


def _to_freeze(subject: Watched, points: Sequence[Point], alone: Fit, rule: FreezeRule) -> Said | None:
    """The forecast to freeze, if it is time: of the run's own evaluations, so that what rings is that it fell and not
    that it is unlike others.

    It is made from the points up to the first that is far enough, whenever the refit comes: a late worker must not
    freeze a forecast that has already seen the fall it is to be judged by. A misfit there is tried again with all.
    """
    first = _first_due(points, subject.budget, rule)
    if first is None:
        return None
    if first < len(points):
        early = fit(curve_of(subject.name, subject.unit, points[:first]))
        if not early.withheld:
            return _frozen(subject, points[:first], early)
    return None if alone.withheld else _frozen(subject, points, alone)


def _first_due(points: Sequence[Point], budget: float | None, rule: FreezeRule) -> int | None:
    """How many points there are up to the first that is far enough; None when none is.

    A fork is judged by what its parent's whole curve foretells, not by how its parent did before.
    """
    if budget is None:
        return None
    least = max(rule.min_points, sum(point.attempt == INHERITED for point in points))
    far_enough = (
        count
        for count, point in enumerate(points, start=1)
        if point.compute >= rule.fraction * budget and count >= least
    )
    return next(far_enough, None)


def _frozen(subject: Watched, points: Sequence[Point], fitted: Fit) -> Said:
    """What is said, with the state to judge later points by: evaluations are expected to go on as now to the budget."""
    said = say(subject, points, fitted)[0]
    usual_gap = float(np.median(np.diff([point.compute for point in points])))
    left = max((subject.budget or 0.0) - points[-1].compute, 0.0)
    horizon = max(1, math.ceil(left / usual_gap))
    return dataclasses.replace(said, state=json_safe(freeze(fitted, horizon=horizon).to_dict()))


def _judged(subject: Watched, points: Sequence[Point], frozen: tuple[dict[str, Any], float] | None) -> list[Point]:
    """The evaluations that the frozen forecast is to judge: all after it.

    After an alert was resolved the watch begins anew: what had been seen by then rings no second time.
    """
    if frozen is None:
        return []
    made_at, settled = frozen[1], subject.settled
    return [point for point in points if point.compute > made_at and (settled is None or settled.is_before(point))]


def _verdict(subject: Watched, judged: Sequence[Point], state: dict[str, Any], alone: Fit) -> Watch:
    compute, reward = [point.compute for point in judged], [point.reward for point in judged]
    return watch(FrozenForecast.from_dict(state), compute, reward, fit=alone, earlier=subject.earlier)


def _alarm(subject: Watched, judged: Sequence[Point], verdict: Watch) -> Alarm | None:
    """What rings; None while the forecast holds."""
    if verdict.level is None:
        return None
    title, text = fallen.words(subject.name, verdict)
    shown = json_safe(fallen.evidence(verdict, {point.compute: point.step for point in judged}))
    since, back = verdict.since_compute, verdict.back_since
    return Alarm(verdict.level, title, text, since, back, judged[-1].compute, shown, verdict.is_above)


def _revised(subject: Watched, fitted: Fit, frozen: tuple[dict[str, Any], float] | None) -> Revision | None:
    """Whether the forecast at the budget has left the frozen one's interval, slowly and without an alarm."""
    if frozen is None or subject.budget is None:
        return None
    return revision(FrozenForecast.from_dict(frozen[0]), fitted, subject.budget)
