"""Backtest: forecasts from the first part of finished runs, judged by how those ended.

Every method sees the evaluations with compute <= fraction x the last compute and predicts the mean of the last 10 % of
the evaluations (at least 1, at most 30), whose places in compute are known. Ours comes as the median of the posterior
of that mean with its 90 % interval: curve, wandering part and sampling noise of a mean (see `outcome.predict_mean`).

With `prior="siblings"` the other runs at full length are the past: they give the prior and, where there are at least 3,
their own backtests at the same fraction (each with its own siblings as prior) move and stretch the interval, those most
that went like the run so far. A
series with the very same evaluations as another is that run once more, not a sibling of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import errors
from ..checks import MIN_POINTS, check_kind, is_positive
from ..curves.curve import Curve
from ..fitting.fit import fit
from ..fitting.outcome import Outcome, predict_mean
from ..past.analogues import Course
from ..past.conformal import Conformal
from ..past.hindsight import Hindsight, Past
from ..past.kin import Kin
from ..past.mates import Ends
from ..posterior.prior import Prior
from ..values import Estimate, finite, jsonable
from .baselines import last_value, power_law
from .paper import paper_fit, scaled_grid

if TYPE_CHECKING:
    import plotly.graph_objects as go

FRACTIONS = (0.1, 0.25, 0.5)
OURS = "forecurve"
BASELINES = ("paper-grid", "power-law", "last-value")

_ROUNDING = 1e-9
_LEFT_OUT = 24  # runs up to which each has no part in any prior that its forecast hangs on

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Row:
    """One forecast and what came.

    Attributes:
        series, fraction, method: which forecast.
        predicted: its point, None where there are fewer than 3 evaluations to fit. A forecast that is withheld for a
            misfit keeps the number that it would have given.
        lower, upper: its 90 % interval, None for a method without one.
        raw: median and interval of the posterior before any conformal scaling.
        actual: the mean of the last 10 % of the evaluations.
        withheld: a misfit that withholds the forecast was found, or there were too few evaluations.
        calibration: `posterior`, `adjusted (n past runs)` with 3 to 8, `conformal (n past runs)` with more, or None for
            a method without an interval.
        seconds: what the forecast cost.
    """

    series: str
    fraction: float
    method: str
    predicted: float | None
    lower: float | None
    upper: float | None
    actual: float
    withheld: bool
    seconds: float
    calibration: str | None = None
    raw: Estimate | None = None

    @property
    def error(self) -> float | None:
        """predicted - actual."""
        return None if self.predicted is None else self.predicted - self.actual

    @property
    def covered(self) -> bool | None:
        """Whether the interval holds the outcome."""
        if self.lower is None or self.upper is None:
            return None
        return self.lower <= self.actual <= self.upper

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe, with the keys of `forecurve backtest --json`."""
        names = ("series", "fraction", "method", "predicted", "lower", "upper", "actual", "error", "covered")
        body = {name: getattr(self, name) for name in (*names, "withheld", "seconds", "calibration")}
        return dict(jsonable({**body, "raw": None if self.raw is None else self.raw.to_dict()}))


@dataclass(frozen=True)
class Summary:
    """One method at one fraction.

    Attributes:
        n: rows with a prediction; mae, median and max of |error| are over these, withheld forecasts included.
        coverage, width: share of intervals that hold the outcome, median width; None for a method without intervals.
        raw_mae, raw_coverage, raw_width: of the posterior, before conformal scaling.
        withheld: rows whose forecast is withheld, those without a prediction included.
    """

    fraction: float
    method: str
    n: int
    mae: float | None
    median: float | None
    max: float | None
    coverage: float | None
    width: float | None
    withheld: int
    raw_mae: float | None
    raw_coverage: float | None
    raw_width: float | None

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        return dict(jsonable(dict(vars(self))))


@dataclass(frozen=True)
class Backtest:
    """All rows, and their summary by fraction and method."""

    rows: tuple[Row, ...]

    @property
    def summary(self) -> tuple[Summary, ...]:
        """By fraction, then method, in the order in which they first appear."""
        groups: dict[tuple[float, str], list[Row]] = {}
        for row in self.rows:
            groups.setdefault((row.fraction, row.method), []).append(row)
        return tuple(_summary(*key, rows) for key, rows in groups.items())

    def to_dict(self) -> dict[str, Any]:
        """`{"series": [row...], "summary": [...]}`."""
        return {
            "series": [row.to_dict() for row in self.rows],
            "summary": [summary.to_dict() for summary in self.summary],
        }

    def plot(self) -> go.Figure:
        """Outcome against forecast, one trace a method and fraction. Needs plotly."""
        from .plot import plot

        return plot(self)

    def __repr__(self) -> str:
        lines = [f"Backtest: {len(self.rows)} forecasts"]
        for one in self.summary:
            mae = "-" if one.mae is None else f"{one.mae:.4f}"
            cover = "" if one.coverage is None else f", coverage {one.coverage:.2f}, width {one.width:.3f}"
            lines.append(f"  {one.fraction:g} {one.method}: n {one.n}, MAE {mae}{cover}, withheld {one.withheld}")
        return "\n".join(lines)


def backtest(
    curves: Sequence[Curve],
    *,
    fractions: Sequence[float] = FRACTIONS,
    prior: str | Prior = "none",
    baselines: Sequence[str] = (),
    progress: Progress | None = None,
) -> Backtest:
    """Forecast each finished run from its first part.

    Args:
        curves: finished runs. With `siblings` they are one another's past and need one unit and one metric.
        fractions: of the last compute, each in (0, 1).
        prior: `none`, `paper`, `siblings`, or a `Prior`.
        baselines: of `paper-grid`, `power-law`, `last-value`.
        progress: called with (forecasts done, forecasts in all).

    Raises:
        CurveError: a fraction or a baseline that does not exist. PriorError: an unknown prior.

    Returns:
        Rows in the order of curves, fractions, methods (ours first).
    """
    check_kind("curves", curves, Sequence, "pass a list of curves", errors.CurveError)
    for at, curve in enumerate(curves):
        check_kind(f"curves[{at}]", curve, Curve, "pass Curve(compute, reward)", errors.CurveError)
    _check(fractions, baselines)
    fractions = [float(fraction) for fraction in fractions]
    tick = _Ticker(progress, len(curves) * len(fractions) + (len(curves) if prior == "siblings" else 0))
    if prior == "siblings":
        ours = _among_siblings(Kin(curves, tick), fractions, tick)
    else:
        ours = [_each(curve, fractions, prior, tick) for curve in curves]
    rows: list[Row] = []
    for curve, forecasts in zip(curves, ours, strict=True):
        for row in forecasts:
            rows += [row, *(_baseline(curve, row.fraction, name) for name in baselines)]
    return Backtest(tuple(rows))


def _check(fractions: Sequence[float], baselines: Sequence[str]) -> None:
    check_kind("fractions", fractions, Sequence, "pass a list, such as [0.1, 0.25]", errors.CurveError)
    for fraction in fractions:
        if not (is_positive(fraction) and fraction < 1):
            raise errors.CurveError(
                "fractions", fraction, "a share of the run is needed", "give numbers above 0 and below 1"
            )
    for name in baselines:
        if name not in BASELINES:
            raise errors.CurveError("baselines", name, "no such baseline", f"use {', '.join(BASELINES)}")


@dataclass
class _Ticker:
    """Counts what is done."""

    progress: Progress | None
    total: int
    done: int = 0

    def __call__(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def early_part(curve: Curve, fraction: float) -> Curve | None:
    """The evaluations with compute <= fraction x the last compute; None when they are fewer than 3."""
    limit = fraction * curve.now * (1 + _ROUNDING)
    if int(np.searchsorted(curve.compute, limit, side="right")) < MIN_POINTS:
        return None
    return curve.until(limit)


def _each(curve: Curve, fractions: Sequence[float], prior: str | Prior, tick: Callable[[], None]) -> list[Row]:
    rows = []
    for fraction in fractions:
        rows.append(_ours(curve, fraction, prior))
        tick()
    return rows


def _ours(curve: Curve, fraction: float, prior: str | Prior) -> Row:
    began = time.perf_counter()
    outcome, early = Outcome.of(curve), early_part(curve, fraction)
    if early is None:
        return _nothing(curve, fraction, OURS, outcome)
    found = fit(early, prior=prior)
    estimate = predict_mean(found, outcome.compute)
    return Row(
        series=curve.name,
        fraction=fraction,
        method=OURS,
        predicted=estimate.median,
        lower=estimate.lower,
        upper=estimate.upper,
        actual=outcome.reward,
        withheld=found.withheld,
        seconds=time.perf_counter() - began,
        calibration=Conformal().label,
        raw=estimate,
    )


def past_forecast(curve: Curve, fraction: float, prior: str | Prior = "none") -> Past | None:
    """What would have been said of a finished run at this share of its compute, and what came: for `Hindsight.of`.

    None where there are fewer than 3 evaluations by then. `prior` must not be made of the run itself.
    """
    row = _ours(curve, fraction, prior)
    if row.raw is None:
        return None
    return Past(curve.name, fraction, row.raw, row.actual, Course.of(curve))


def _nothing(curve: Curve, fraction: float, method: str, outcome: Outcome) -> Row:
    return Row(curve.name, fraction, method, None, None, None, outcome.reward, withheld=True, seconds=0.0)


def _among_siblings(kin: Kin, fractions: Sequence[float], tick: Callable[[], None]) -> list[list[Row]]:
    """Each forecast moved and stretched by how those of the other runs at the same fraction turned out.

    The run itself has no part in these either, it is left out of the prior of each; but not of more than `_LEFT_OUT`
    runs, where that would take minutes and a prior hardly hangs on any one.
    """
    courses = [Course.of(curve) for curve in kin.curves]
    made: dict[tuple[int, Prior], list[Row]] = {}

    def rows_of(at: int, mates: bool, but: int | None = None) -> list[Row]:
        prior = kin.prior(at, mates=mates, but=but if len(kin.curves) <= _LEFT_OUT else None)
        if (at, prior) not in made:
            counted = tick if prior == kin.prior(at) else _nobody
            made[at, prior] = _each(kin.curves[at], fractions, prior, counted)
        return made[at, prior]

    scaled = []
    for at, curve in enumerate(kin.curves):
        like, mates = kin.past_like(kin.others(at), curve.arm)
        ended = [kin.mates_ended(other, kin.curves[other].now, but=at) for other in like]
        others = [(rows_of(other, mates, at), courses[other], ends) for other, ends in zip(like, ended, strict=True)]
        own = kin.mates_ended(at, curve.now)
        scaled.append(
            [
                _scaled(curve, row, [_past(told[i], course, ends) for told, course, ends in others], own)
                for i, row in enumerate(rows_of(at, True))
            ]
        )
    return scaled


def _nobody() -> None:
    """Counts nothing."""


def _past(row: Row, course: Course, mates: Ends) -> Past | None:
    return None if row.raw is None else Past(row.series, row.fraction, row.raw, row.actual, course, mates)


def _scaled(curve: Curve, row: Row, others: Sequence[Past | None], mates: Ends) -> Row:
    if row.raw is None:
        return row
    early = early_part(curve, row.fraction) or curve
    past = [replace(one, run=str(at)) for at, one in enumerate(others) if one is not None]  # names need not be distinct
    conformal = Conformal.of(Hindsight.of(past, row.raw, course=Course.of(early), width=curve.width, mates=mates))
    estimate = conformal.apply(row.raw, curve.bounds)
    return replace(
        row,
        predicted=estimate.median,
        lower=estimate.lower,
        upper=estimate.upper,
        calibration=conformal.label,
    )


def _baseline(curve: Curve, fraction: float, method: str) -> Row:
    began = time.perf_counter()
    outcome, early = Outcome.of(curve), early_part(curve, fraction)
    if early is None:
        return _nothing(curve, fraction, method, outcome)
    predicted = _POINTS[method](early, curve, outcome)
    seconds = time.perf_counter() - began
    return Row(curve.name, fraction, method, predicted, None, None, outcome.reward, withheld=False, seconds=seconds)


def _paper_point(early: Curve, curve: Curve, outcome: Outcome) -> float:
    grid = scaled_grid(float(early.reward[0]), curve.now, curve.bounds)
    return float(paper_fit(early, grid=grid).reward_at(outcome.compute).mean())


def _power_point(early: Curve, curve: Curve, outcome: Outcome) -> float:
    return float(power_law(early).reward_at(outcome.compute).mean())


def _last_point(early: Curve, curve: Curve, outcome: Outcome) -> float:
    return last_value(early)


_POINTS = dict(zip(BASELINES, (_paper_point, _power_point, _last_point), strict=True))


def _summary(fraction: float, method: str, rows: Sequence[Row]) -> Summary:
    wrong = np.abs([row.error for row in rows if row.error is not None])
    with_interval = [row for row in rows if row.raw is not None]
    return Summary(
        fraction=fraction,
        method=method,
        n=len(wrong),
        mae=_of(np.mean, wrong),
        median=_of(np.median, wrong),
        max=_of(np.max, wrong),
        coverage=_of(np.mean, [row.covered for row in with_interval]),
        width=_of(np.median, [(row.upper or 0.0) - (row.lower or 0.0) for row in with_interval]),
        withheld=sum(row.withheld for row in rows),
        raw_mae=_of(np.mean, [abs(row.raw.median - row.actual) for row in with_interval if row.raw is not None]),
        raw_coverage=_of(np.mean, [_holds(row) for row in with_interval]),
        raw_width=_of(np.median, [row.raw.width for row in with_interval if row.raw is not None]),
    )


def _holds(row: Row) -> bool:
    return row.raw is not None and row.raw.lower <= row.actual <= row.raw.upper


def _of(statistic: Callable[..., Any], values: Any) -> float | None:
    return finite(float(statistic(values))) if len(values) else None
