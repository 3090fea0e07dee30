"""A forecast of any metric that a run logs, made when somebody asks: of another benchmark, or of the training reward.

It is worked out as that of the run's own curve is: the comparable runs that logged the metric too are its past, as far
as they went by it, and what each of those would have been told is worked out from the others. Nothing of it is kept,
so no alert rings by it and no track record counts it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlalchemy import text
from sqlalchemy.orm import Session

from forecurve.digits import as_given
from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE
from forecurve.science import CurveError, fit
from forecurve.science.checks import bounds_of
from forecurve.science.fitting.outcome import FINISHED_AT
from forecurve.science.past.telling import is_finished, least_to_tell
from server.errors import Invalid, NotFound
from server.events.service import current_cursor
from server.metrics.series import Series, series_of
from server.runs.models import Run
from server.runs.sentence import ceiling_words
from server.runs.service import get_run
from server.runs.states import TERMINAL, Status

from .curves import point_view, restart_marks
from .ending import ending_ahead
from .fitted import MIN_POINTS, curve_of
from .past_runs import PastRun, arm_of, families_of, runs_that_logged
from .saying import Subject, informed, say, to_fit
from .schemas import MetricCurve, SaidView
from .service import Said

MOST_POINTS = 400
"""Of a metric that is logged at every step more tell no more: its noise is averaged with it."""
MOST_PAST = 24
"""The newest comparable runs that are asked: what each would have been told is worked out from all others."""
LONGEST_WAIT_S = 5.0
OTHERS_FIRST = "Forecasts of other metrics are being worked out; ask again."
AT_ONCE = 2
"""In one process, which a fit keeps busy, and the reading of long metrics its database."""


@dataclass(frozen=True)
class Asked:
    """What is to be forecast.

    Attributes:
        low, high: the range that its values can be in.
        budget: where it is to end; None for the run's own.
    """

    metric: str
    low: float = 0.0
    high: float = 1.0
    budget: float | None = None

    def check(self) -> None:
        """Raises Invalid for what cannot be."""
        if not self.low < self.high:
            raise Invalid.field("high", self.high, f"a number above low is needed, which is {as_given(self.low)}")
        try:
            bounds_of((self.low, self.high))
        except CurveError as error:
            raise Invalid.field("high", self.high, f"{error.message}; {error.way_out}") from None
        if self.budget is not None and not LEAST_COMPUTE <= self.budget <= MOST_COMPUTE:
            takes = "above 0" if self.budget <= 0 else f"from {LEAST_COMPUTE:g} to {MOST_COMPUTE:g}"
            raise Invalid.field("budget", self.budget, f"an amount of compute {takes} is needed")

    def holds(self, series: Series) -> bool:
        """Whether all values lie in the range."""
        return self.low <= series.least and series.greatest <= self.high


def metric_curve(session: Session, run_id: str, asked: Asked) -> MetricCurve:
    """The curve of one metric, and its forecast.

    Raises:
        NotFound: no such run, or it has logged no such metric.
        Invalid: what is asked cannot be, values lie outside of the range, or nobody says how much compute they took.
    """
    asked.check()
    cursor = current_cursor(session)  # what commits while we read is seen again by who follows the stream from here
    run = get_run(session, run_id)
    mine = _checked(series_of(session, [run.id], asked.metric, MOST_POINTS)[run.id], asked)
    budget = asked.budget or run.budget_compute
    past = _past(session, run, mine, asked, budget)
    bounds, points = (asked.low, asked.high), tuple(mine.points)
    said = _said(
        Subject(asked.metric, run.compute_unit, budget, points, siblings=past, arm=arm_of(session, run), bounds=bounds)
    )
    over = Status(run.status) in TERMINAL
    found = None if isinstance(said, str) else said
    sentence = said if isinstance(said, str) else _sentence(run, said, over)
    return MetricCurve(
        run_id=run.id,
        metric=asked.metric,
        low=asked.low,
        high=asked.high,
        logged=mine.logged,
        lost=mine.lost,
        thinned=mine.is_thinned,
        unit=run.compute_unit,
        budget=budget,
        points=[point_view(point) for point in points],
        restarts=restart_marks(points, ()),
        forecast=None if found is None else _view(found, sentence, over),
        ending=None if found is None else ending_ahead(found.summary, found.at_compute, over=over),
        past=[one.id for one in past],
        sentence=sentence,
        cursor=cursor,
    )


def _checked(series: Series, asked: Asked) -> Series:
    if not series.logged:
        named = "the run has logged no finite value of it; `GET /v1/runs/{id}/metrics` lists what it has"
        raise NotFound.field("metric", asked.metric, named)
    if not series.points:
        way_out = "log it with `compute=`, or report evaluations, between which it is read"
        raise Invalid.field("metric", asked.metric, f"nobody says how much compute its values took; {way_out}")
    if not asked.holds(series):
        found = f"from {as_given(series.least)} to {as_given(series.greatest)}"
        outside = "low" if series.least < asked.low else "high"
        message = f"values {found} were logged; give the range that they can be in"
        raise Invalid.field(outside, getattr(asked, outside), message)
    return series


def _past(session: Session, run: Run, mine: Series, asked: Asked, budget: float | None) -> tuple[PastRun, ...]:
    """Comparable runs that tell where this one goes, by how far they went with this metric; the newest first.

    As of imported runs, nothing was forecast of it. Of forks that go on with another run's curve and that run one
    counts, and none of the run's own family: what came of them came partly of it.
    """
    comparable = runs_that_logged(session, run, asked.metric)
    went = _went(session, comparable, asked.metric)
    least = _least(comparable, went, mine.points[-1].compute, budget)
    families = families_of(session, [run.id, *(one.id for one in comparable)])
    enough = [one for one in comparable if went[one.id] >= least(one) and families[one.id] != families[run.id]]
    chosen = {families[one.id]: one for one in sorted(enough, key=lambda one: _tells(one, families, went))}
    wanted = [one for one in enough if chosen[families[one.id]] is one]
    found: list[PastRun] = []
    while wanted and len(found) < MOST_PAST:
        portion, wanted = wanted[:MOST_PAST], wanted[MOST_PAST:]
        series = series_of(session, [one.id for one in portion], asked.metric, MOST_POINTS)
        told = [_as_logged(one, series[one.id], asked) for one in portion]
        found += [one for one in told if one is not None and one.points[-1].compute >= least(one)]
    return tuple(found[:MOST_PAST])


def _tells(one: PastRun, families: Mapping[str, str], went: Mapping[str, float]) -> tuple[bool, float, bool]:
    """How much one of a family tells: that which is no fork has the whole curve, of forks the furthest has most."""
    return families[one.id] == one.id, went[one.id], one.over


def _as_logged(one: PastRun, theirs: Series, asked: Asked) -> PastRun | None:
    """The run with the metric in place of its evaluations; None where its values lie outside of the range."""
    if not theirs.points or not asked.holds(theirs):
        return None
    return replace(one, points=tuple(theirs.points), imported=True, bounds=(asked.low, asked.high))


def _least(
    comparable: Sequence[PastRun], went: Mapping[str, float], now: float, budget: float | None
) -> Callable[[PastRun], float]:
    """How far each run must have gone to tell of one that has spent `now`."""
    if budget is None:
        return lambda one: FINISHED_AT * one.budget if one.over else math.inf
    finished = sum(one.over and is_finished(went[one.id], budget) for one in comparable)
    least = least_to_tell(now, budget, finished)
    return lambda one: least


def _went(session: Session, runs: Sequence[PastRun], metric: str) -> dict[str, float]:
    """How far each went with the metric; where that was logged without compute, at most as far as it was evaluated."""
    rows = session.execute(_NEWEST, {"runs": [one.id for one in runs], "metric": metric}).all()
    told: dict[str, float | None] = {row.run_id: row.compute for row in rows}
    evaluated = {one.id: one.points[-1].compute if one.points else 0.0 for one in runs}
    return {one.id: evaluated[one.id] if (went := told.get(one.id)) is None else went for one in runs}


_NEWEST = text("""
    SELECT asked.run_id, newest.compute FROM unnest(CAST(:runs AS text[])) AS asked (run_id)
    CROSS JOIN LATERAL (
      SELECT compute FROM metric_points AS point WHERE point.run_id = asked.run_id AND metric = :metric
      ORDER BY attempt DESC, step DESC LIMIT 1
    ) AS newest
""")


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
        return _of_metric(f"No curve can be fitted to it: {error.message}.")


def _view(said: Said, sentence: str, over: bool) -> SaidView:
    """Of a run that is over, nothing is advised or reached any more."""
    summary = dict(said.summary)
    if summary.get("advice"):
        summary["advice"] = summary["advice"] | {"reason": _of_metric(summary["advice"]["reason"])}
    if over:
        summary |= {"advice": None, "milestones": []}
    return SaidView.made(replace(said, summary=summary, sentence=sentence))


def _sentence(run: Run, said: Said, over: bool) -> str:
    if not over:
        return _of_metric(said.sentence)
    spent = f"{as_given(float(f'{said.at_compute:.4g}'))} {said.unit}"
    return _of_metric(f"{run.status.capitalize()}; last logged at {spent}. {ceiling_words(said.summary)}")


def _of_metric(words: str) -> str:
    """The science speaks of evaluations and their pass rates, and a metric need be neither."""
    return _WORDS.sub(lambda found: _OTHER_WORDS[found[0]], words)


_OTHER_WORDS = {
    "pass rate": "metric",
    "pass rates": "values",
    "evaluation": "value",
    "evaluations": "values",
}
_WORDS = re.compile(rf"\b({'|'.join(_OTHER_WORDS)})\b")
