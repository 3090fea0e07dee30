"""A forecast of any metric that a run logs, made when somebody asks: of another benchmark, or of the training reward.

It is worked out as that of the run's own curve is: the comparable runs that logged the metric too are its past, and
what each of those would have been told is worked out from the others. Nothing of it is kept, so no alert rings by it
and no track record counts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from threading import BoundedSemaphore

from sqlalchemy.orm import Session

from forecurve.digits import as_given
from forecurve.limits import is_compute
from forecurve.science import CurveError, fit
from forecurve.science.checks import bounds_of
from server.errors import Invalid, NotFound
from server.events.service import current_cursor
from server.metrics.series import Series, series_of
from server.places import Busy
from server.runs.models import Run
from server.runs.schemas import Ending
from server.runs.service import get_run
from server.runs.states import TERMINAL, Status

from .curves import point_view, restart_marks
from .ending import ending_of
from .fitted import MIN_POINTS, curve_of
from .past_runs import PastRun, Version, arm_of, past_runs, telling_runs
from .remembered import Remembered
from .saying import Subject, informed, say, to_fit
from .schemas import MetricCurve, SaidView
from .service import Said

MOST_POINTS = 400
"""Of a metric that is logged at every step more tell no more: its noise is averaged with it."""
MOST_PAST = 24
"""The newest comparable runs that are asked: what each would have been told is worked out from all others."""

_KEPT: Remembered[tuple[Version, str], Series] = Remembered(128)  # some 100 kB each
_AT_ONCE = 2
_LONGEST_WAIT_S = 5.0
_places = BoundedSemaphore(_AT_ONCE)


def metric_curve(
    session: Session, run_id: str, metric: str, low: float, high: float, budget: float | None = None
) -> MetricCurve:
    """The curve of one metric, and its forecast at a budget, by default the run's own.

    Args:
        low, high: the range that its values can be in.

    Raises:
        NotFound: no such run, or it has logged no such metric.
        Invalid: the range is none, values lie outside it, or nobody says how much compute they took.
        Busy: others are being worked out.
    """
    _check_range(low, high)
    if budget is not None and not (budget > 0 and is_compute(budget)):
        raise Invalid.field("budget", budget, "an amount of compute above 0 is needed")
    cursor = current_cursor(session)  # what commits while we read is seen again by who follows the stream from here
    run = get_run(session, run_id)
    past = _past(session, run)
    mine = _checked(series_of(session, [run.id], metric, MOST_POINTS)[run.id], metric, low, high)
    others, arm = _as_logged(past, _theirs(session, past, metric), low, high), arm_of(session, run)
    unit, budget, points = run.compute_unit, budget or run.budget_compute, tuple(mine.points)
    with _place():
        said = _said(Subject(metric, unit, budget, points, siblings=others, arm=arm, bounds=(low, high)))
    found = None if isinstance(said, str) else said
    return MetricCurve(
        run_id=run.id,
        metric=metric,
        low=low,
        high=high,
        logged=mine.logged,
        lost=mine.lost,
        unit=unit,
        budget=budget,
        points=[point_view(point) for point in points],
        restarts=restart_marks(points, ()),
        forecast=None if found is None else SaidView.made(found),
        ending=None if found is None else _ending(run, found),
        past=[one.id for one in others],
        sentence=said if found is None else _of_metric(found.sentence),
        cursor=cursor,
    )


def _past(session: Session, run: Run) -> list[PastRun]:
    past = past_runs(session, run)
    return telling_runs(session, run, past)[:MOST_PAST]


def _check_range(low: float, high: float) -> None:
    if not low < high:
        raise Invalid.field("high", high, f"a number above low is needed, which is {as_given(low)}")
    try:
        bounds_of((low, high))
    except CurveError as error:
        raise Invalid.field("high", high, f"{error.message}; {error.way_out}") from None


def _checked(series: Series, metric: str, low: float, high: float) -> Series:
    if not series.logged:
        named = "the run has logged no finite value of it; `GET /v1/runs/{id}/metrics` lists what it has"
        raise NotFound.field("metric", metric, named)
    if not series.points:
        way_out = "log it with `compute=`, or report evaluations, between which it is read"
        raise Invalid.field("metric", metric, f"nobody says how much compute its values took; {way_out}")
    if series.least < low or series.greatest > high:
        found = f"from {as_given(series.least)} to {as_given(series.greatest)}"
        outside = "low" if series.least < low else "high"
        given = low if outside == "low" else high
        raise Invalid.field(outside, given, f"values {found} were logged; give the range that they can be in")
    return series


def _theirs(session: Session, past: Sequence[PastRun], metric: str) -> Mapping[str, Series]:
    """The metric of the past runs, by run. Most are over and log no more."""

    def read(missing: Sequence[tuple[Version, str]]) -> dict[tuple[Version, str], Series]:
        found = series_of(session, [version.run_id for version, _ in missing], metric, MOST_POINTS)
        return {(version, name): found[version.run_id] for version, name in missing}

    kept = _KEPT.of([(one.version, metric) for one in past], read)
    return {version.run_id: series for (version, _), series in kept.items()}


def _as_logged(past: Sequence[PastRun], series: Mapping[str, Series], low: float, high: float) -> tuple[PastRun, ...]:
    """The past runs with the metric in place of their evaluations. As of imported runs, nothing was forecast of it."""
    logged = [(one, series[one.id]) for one in past]
    return tuple(
        replace(one, points=tuple(theirs.points), imported=True, bounds=(low, high))
        for one, theirs in logged
        if theirs.points and low <= theirs.least and theirs.greatest <= high
    )


def _ending(run: Run, said: Said) -> Ending | None:
    """Of a run that is over, or whose budget is spent, no end is expected any more."""
    ending = None if Status(run.status) in TERMINAL else ending_of(said.summary)
    return None if ending is None or ending.compute <= said.at_compute else ending


def _of_metric(sentence: str) -> str:
    """Falls are told of pass rates, which a metric need not be."""
    return sentence.replace("The pass rate ", "The metric ")


@contextmanager
def _place() -> Iterator[None]:
    """One of a few: a fit keeps the whole process busy, and who waits for one keeps others from being answered."""
    if not _places.acquire(timeout=_LONGEST_WAIT_S):
        raise Busy("Forecasts of other metrics are being worked out; ask again.")
    try:
        yield
    finally:
        _places.release()


@lru_cache(maxsize=8)
def _said(subject: Subject) -> Said | str:
    """What is said; in words why nothing is."""
    try:
        points = to_fit(subject.points)
        if points is None:
            return f"Points so far: {len(subject.points)}; a forecast takes {MIN_POINTS}."
        fitted = informed(fit(curve_of(subject.name, subject.unit, points, bounds=subject.bounds)), subject)
        return say(subject, points, fitted)[0]
    except CurveError as error:
        return str(error)
