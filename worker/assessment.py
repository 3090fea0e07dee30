"""What is to be said of a run from its curve: forecast, freeze, watch, advice. No database, no clock.

points ──► drop what goes back in compute ──► fit by itself ──► with past runs as prior ──► Said + advice
                     │                         │
                     │                         └─ far enough and no misfit ──► frozen forecast
                     └─ after the frozen forecast ──► watch ──► WARN, ALERT or fine
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forecurve.science import (
    Advice,
    Conformal,
    CurveError,
    Fit,
    FrozenForecast,
    Hindsight,
    Past,
    Revision,
    Watch,
    advise,
    fit,
    freeze,
    milestones,
    predict_ending,
    revision,
    watch,
)
from server.alerts.service import Settled
from server.forecasts.ending import ending_words
from server.forecasts.ends_ahead import ends_ahead
from server.forecasts.fitted import MIN_POINTS, curve_of, rising
from server.forecasts.past_runs import PastRun
from server.forecasts.service import Said
from server.forecasts.siblings import about, expected_ends, prior_of, retold, telling
from server.forecasts.track_record import course_of, mates_ended
from server.metrics.curve import INHERITED, Point

from . import fallen

_GRID = 80
_SHARES = (0.005, 0.025, *(share / 100 for share in range(5, 100, 5)), 0.975, 0.995)
"""Of the ceiling's posterior, below which its quantiles are kept."""
_BEYOND = 1.25
"""The band reaches a quarter beyond the budget or the last evaluation, whichever is later."""


@dataclass(frozen=True)
class FreezeRule:
    """The forecast is frozen at the first evaluation past `fraction` of the budget that has `min_points` up to it."""

    fraction: float
    min_points: int


@dataclass(frozen=True)
class Subject:
    """A run as its assessment sees it.

    `frozen` is the state of its frozen forecast and the compute it was made at; `siblings` are comparable runs that
    tell where it goes, `arm` what its other seeds are known by; `past` is how forecasts of comparable runs that
    rested on their own evaluations alone turned out, `past_informed` those that had past runs as their prior; `settled`
    is up to where its falls below the forecast were resolved; `earlier` is what the watch said of it before, where that
    is known: what is said now is the same without it.
    """

    name: str
    unit: str
    budget: float | None
    points: Sequence[Point]
    frozen: tuple[dict[str, Any], float] | None
    past: Sequence[Past] = ()
    past_informed: Sequence[Past] = ()
    siblings: Sequence[PastRun] = ()
    arm: str | None = None
    settled: Settled | None = None
    earlier: Watch | None = None

    @property
    def finished(self) -> list[PastRun]:
        """Those of its siblings that ended about where it will, or beyond."""
        return [one for one in self.siblings if one.tells_the_end(self.budget)]


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


def assess(subject: Subject, rule: FreezeRule) -> Assessment | None:
    """Fit the curve and judge it; None while there is too little to say anything.

    Raises:
        CurveError: the evaluations are no curve (e.g. rewards out of range, or compute that does not rise).
    """
    points = rising(subject.points)
    if len(points) < MIN_POINTS:
        if len(subject.points) < MIN_POINTS:
            return None
        raise _stands_still(len(subject.points), len(points))
    alone = fit(curve_of(subject.name, subject.unit, points))
    fitted = _informed(alone, subject)
    said, advice = _said(subject, points, fitted)
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


def _informed(alone: Fit, subject: Subject) -> Fit:
    """The fit with what past runs tell as its prior; the one it has by itself where they tell nothing.

    So it is too where one sigmoid is the wrong curve, and where it would only be with that prior.
    """
    prior = prior_of(subject.siblings, subject.arm, subject.unit, subject.budget)
    if not prior.informative or alone.withheld:
        return alone
    informed = fit(alone.curve, prior=prior)
    return alone if informed.withheld else informed


def _stands_still(evaluations: int, rising: int) -> CurveError:
    needed = f"{MIN_POINTS} evaluations whose compute rises are needed"
    return CurveError("compute", f"{rising} of {evaluations}", needed, "report with each the compute spent so far")


def json_safe(value: Any) -> Any:
    """`value` with arrays as lists, numbers of numpy as Python's own, and null for what is not finite."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [json_safe(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _said(subject: Subject, points: Sequence[Point], fitted: Fit) -> tuple[Said, Advice]:
    now, budget = points[-1].compute, subject.budget
    hindsight = None if budget is None or fitted.withheld else _hindsight(subject, points, fitted, budget)
    advice = advise(fitted, now=now, budget=budget, hindsight=hindsight)
    summary = json_safe(fitted.to_dict(budget=budget))
    summary["ceiling_quantiles"] = _ceiling_quantiles(fitted)
    summary["headroom"] = json_safe(fitted.headroom.to_dict())
    summary["prior"] = _prior(subject, fitted)
    summary["last"] = points[-1].reward
    summary["ends_ahead"] = json_safe(ends_ahead(fitted, budget))
    summary["milestones"] = _milestones(fitted, budget, hindsight)
    summary["advice"] = {"action": advice.action, "reason": advice.reason}
    if hindsight is not None and summary["at_budget"] is not None:
        summary["at_budget"] |= json_safe(_ending(hindsight, fitted))
    sentence = fitted.sentence(now=now, budget=budget, hindsight=hindsight)
    said = Said(
        at_compute=now,
        at_step=points[-1].step,
        points=len(points),
        unit=subject.unit,
        summary=summary,
        band=_band(fitted, points, subject.budget),
        state={},
        sentence=f"{sentence} {ending_words(summary, subject.unit, now)}".strip(),
        seconds=fitted.seconds,
    )
    return said, advice


def _prior(subject: Subject, fitted: Fit) -> dict[str, Any] | None:
    """What the fit was told by: runs, of which `seeds` are of its own arm, and `ahead` have not ended where it will.

    One that fell is asked, and tells nothing.
    """
    if not fitted.prior.informative:
        return None
    told_by = telling(subject.siblings, subject.unit)
    seeds = 0 if subject.arm is None else sum(one.arm == subject.arm for one in told_by)
    ahead = sum(not one.tells_the_end(subject.budget) for one in told_by)
    return {"name": fitted.prior.name, "seeds": seeds, "runs": [one.id for one in told_by], "ahead": ahead}


def _hindsight(subject: Subject, points: Sequence[Point], fitted: Fit, budget: float) -> Hindsight:
    """The end at the budget, as it is scored later, and how past forecasts of theirs turned out."""
    now = points[-1].compute
    ending, fraction = predict_ending(fitted, budget), now / budget
    finished = subject.finished
    ahead = expected_ends(subject.siblings, subject.arm, subject.unit, now=now, budget=budget)
    if fitted.prior.informative and (siblings := retold(finished, subject.unit)) is not None:
        share = about(fraction)
        told = siblings.hindsight(fitted, budget, arm=subject.arm, share=share)
        if told is not None:  # as it is where the budget is spent
            return dataclasses.replace(told, ahead=tuple(ahead))
    past = subject.past_informed if fitted.prior.informative else subject.past
    mates = mates_ended(finished, subject.arm, budget)
    return Hindsight.of(past, ending, course=course_of(points), fraction=fraction, mates=mates, ahead=ahead)


def _milestones(fitted: Fit, budget: float | None, hindsight: Hindsight | None) -> list[dict[str, float | None]]:
    """When it reaches the next levels; none where nothing is said of its end."""
    if fitted.withheld or (budget is not None and budget <= fitted.curve.now):
        return []
    return [one.to_dict() for one in milestones(fitted, budget, hindsight)]


def _ending(hindsight: Hindsight, fitted: Fit) -> dict[str, Any]:
    ending, conformal = hindsight.estimate, Conformal.of(hindsight)
    calibrated = conformal.apply(ending, fitted.curve.bounds)
    return {"ending": ending.to_dict(), "calibrated": calibrated.to_dict(), "conformal": conformal.to_dict()}


def _band(fitted: Fit, points: Sequence[Point], budget: float | None) -> dict[str, list[float]]:
    first = next(point.compute for point in points if point.compute > 0)
    last = max(points[-1].compute, budget or 0.0) * _BEYOND
    grid = np.geomspace(first, last, _GRID)
    later = np.where(grid > points[-1].compute, fitted.widening, 1.0)
    band = fitted.predict(grid).widened(later, fitted.curve.bounds)
    return {name: [_rounded(value) for value in values] for name, values in band.to_dict().items()}


def _ceiling_quantiles(fitted: Fit) -> dict[str, list[float]]:
    """The whole posterior of A, as a chart draws it: its median and 90 % are the summary's own."""
    values = np.quantile(fitted.all_draws.A, _SHARES)
    return {"probabilities": list(_SHARES), "values": [_rounded(value) for value in values]}


def _rounded(value: float) -> float:
    """Six significant digits: more than a chart or a person can use, half the bytes."""
    return float(f"{value:.6g}")


def _to_freeze(subject: Subject, points: Sequence[Point], alone: Fit, rule: FreezeRule) -> Said | None:
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


def _frozen(subject: Subject, points: Sequence[Point], fitted: Fit) -> Said:
    """What is said, with the state to judge later points by: evaluations are expected to go on as now to the budget."""
    said = _said(subject, points, fitted)[0]
    usual_gap = float(np.median(np.diff([point.compute for point in points])))
    left = max((subject.budget or 0.0) - points[-1].compute, 0.0)
    horizon = max(1, math.ceil(left / usual_gap))
    return dataclasses.replace(said, state=json_safe(freeze(fitted, horizon=horizon).to_dict()))


def _judged(subject: Subject, points: Sequence[Point], frozen: tuple[dict[str, Any], float] | None) -> list[Point]:
    """The evaluations that the frozen forecast is to judge: all after it.

    After an alert was resolved the watch begins anew: what had been seen by then rings no second time.
    """
    if frozen is None:
        return []
    made_at, settled = frozen[1], subject.settled
    return [point for point in points if point.compute > made_at and (settled is None or settled.is_before(point))]


def _verdict(subject: Subject, judged: Sequence[Point], state: dict[str, Any], alone: Fit) -> Watch:
    compute, reward = [point.compute for point in judged], [point.reward for point in judged]
    return watch(FrozenForecast.from_dict(state), compute, reward, fit=alone, earlier=subject.earlier)


def _alarm(subject: Subject, judged: Sequence[Point], verdict: Watch) -> Alarm | None:
    """What rings; None while the forecast holds."""
    if verdict.level is None:
        return None
    title, text = fallen.words(subject.name, verdict)
    shown = json_safe(fallen.evidence(verdict, {point.compute: point.step for point in judged}))
    since, back = verdict.since_compute, verdict.back_since
    return Alarm(verdict.level, title, text, since, back, judged[-1].compute, shown, verdict.is_above)


def _revised(subject: Subject, fitted: Fit, frozen: tuple[dict[str, Any], float] | None) -> Revision | None:
    """Whether the forecast at the budget has left the frozen one's interval, slowly and without an alarm."""
    if frozen is None or subject.budget is None:
        return None
    return revision(FrozenForecast.from_dict(frozen[0]), fitted, subject.budget)
