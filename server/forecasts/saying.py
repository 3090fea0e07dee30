"""What is said of a curve, with past runs as its prior. No database, no clock.

points ──► drop what goes back in compute ──► fit by itself ──► with past runs as prior ──► Said + advice
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
    Hindsight,
    Past,
    advise,
    fit,
    milestones,
    predict_ending,
)
from server.metrics.curve import PASS_RATES, Point

from .ending import ending_words
from .ends_ahead import ends_ahead
from .fitted import MIN_POINTS, rising
from .past_runs import PastRun
from .service import Said
from .siblings import about, expected_ends, prior_of, retold, telling
from .track_record import course_of, mates_ended

_GRID = 80
_SHARES = (0.005, 0.025, *(share / 100 for share in range(5, 100, 5)), 0.975, 0.995)
"""Of the ceiling's posterior, below which its quantiles are kept."""
_BEYOND = 1.25
"""The band reaches a quarter beyond the budget or the last evaluation, whichever is later."""


@dataclass(frozen=True)
class Subject:
    """A curve, and what past runs tell of it.

    `siblings` are comparable runs that tell where it goes, `arm` what its other seeds are known by; `past` is how
    forecasts of comparable runs that rested on their own evaluations alone turned out, `past_informed` those that had
    past runs as their prior. All rewards lie in `bounds`.
    """

    name: str
    unit: str
    budget: float | None
    points: Sequence[Point]
    past: Sequence[Past] = ()
    past_informed: Sequence[Past] = ()
    siblings: Sequence[PastRun] = ()
    arm: str | None = None
    bounds: tuple[float, float] = PASS_RATES

    @property
    def finished(self) -> list[PastRun]:
        """Those of its siblings that ended about where it will, or beyond."""
        return [one for one in self.siblings if one.tells_the_end(self.budget)]


def to_fit(points: Sequence[Point]) -> list[Point] | None:
    """The points that are fitted; None while there are too few.

    Raises:
        CurveError: there are enough, but their compute does not rise.
    """
    kept = rising(points)
    if len(kept) >= MIN_POINTS:
        return kept
    if len(points) < MIN_POINTS:
        return None
    raise _stands_still(len(points), len(kept))


def _stands_still(evaluations: int, rising: int) -> CurveError:
    needed = f"{MIN_POINTS} evaluations whose compute rises are needed"
    return CurveError("compute", f"{rising} of {evaluations}", needed, "report with each the compute spent so far")


def informed(alone: Fit, subject: Subject) -> Fit:
    """The fit with what past runs tell as its prior; the one it has by itself where they tell nothing.

    So it is too where one sigmoid is the wrong curve, and where it would only be with that prior.
    """
    prior = prior_of(subject.siblings, subject.arm, subject.unit, subject.budget)
    if not prior.informative or alone.withheld:
        return alone
    informed = fit(alone.curve, prior=prior)
    return alone if informed.withheld else informed


def say(subject: Subject, points: Sequence[Point], fitted: Fit) -> tuple[Said, Advice]:
    """What a fit of `points` says of them, and the advice that is in it."""
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
