"""Forecasts against what came: the track record of the store, and what new forecasts learn from.

A forecast is scored by what it said of the place where the run did end (`ends_ahead`), its budget or another.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sqlalchemy import Row, Select, func, select
from sqlalchemy.orm import Session

from forecurve.science import Conformal, Course, Estimate, Outcome, Past, TrackRecord, score
from forecurve.science.backtesting import track_record as science
from forecurve.science.curves.arms import told_apart
from forecurve.science.departures.misfit import HOLDS
from forecurve.science.fitting.outcome import stood_at, tail_size
from forecurve.science.past.mates import Ends
from server.metrics.curve import Point, validation_curves
from server.runs.models import Run
from server.runs.states import TERMINAL

from .ends_ahead import end_at
from .fitted import MIN_POINTS
from .models import Forecast
from .past_runs import RUNS_KEPT, PastRun, Version
from .past_said import forecasts_made, is_of, nearest
from .remembered import Remembered

_AT_ONCE = 200

ESTIMATES: Remembered[tuple[Version, str], Estimate | None] = Remembered(8192)
"""By a past run and one of its forecasts; some 600 bytes each."""


@dataclass(frozen=True)
class Told:
    """A track record, and what was known without it.

    Attributes:
        record: every forecast that can be scored.
        last: of each forecast, by its id, the pass rate of the last evaluation that it had seen: who expects no change
            forecasts that.
        names: of the runs.
    """

    record: TrackRecord
    last: Mapping[str, float]
    names: Mapping[str, str]


def told(session: Session, *, sweep_id: str | None = None, runs: int = 100) -> Told:
    """Every forecast of the newest `runs` finished runs, scored, beside the last values that it had seen; and how many
    forecasts of live runs wait. What was said of a branch that a resume has thrown away had no end, and is left out."""
    over = select(Run).where(
        Run.status.in_(TERMINAL),
        Run.archived_at.is_(None),
        Run.last_compute.is_not(None),
        Run.import_digest.is_(None),  # what is said of those was said when they were over
    )
    finished = session.scalars(_of_sweep(over, sweep_id).order_by(Run.id.desc()).limit(runs)).all()
    curves = validation_curves(session, [run.id for run in finished])
    outcomes = _outcomes(curves)
    said = _said().where(Forecast.run_id.in_(outcomes)).order_by(Forecast.id)
    rows = session.execute(said.execution_options(yield_per=_AT_ONCE))  # never all at once
    forecasts, last = [], {}
    for row in rows:
        if not is_of(curves[row.run_id], row.at_compute, row.last):
            continue
        if (one := _forecast(row, outcomes[row.run_id])) is not None:
            forecasts.append(one)
            last[row.id] = _seen(curves[row.run_id], row.at_compute) if row.last is None else row.last
    record = score(forecasts, {run_id: outcome.reward for run_id, outcome in outcomes.items()})
    waits = dataclasses.replace(record, waiting=_waiting(session, sweep_id))
    return Told(waits, last, {run.id: run.name for run in finished})


def _seen(points: Sequence[Point], at_compute: float) -> float:
    """The pass rate at the last evaluation up to there, for old forecasts: they do not say it."""
    return points[bisect_right(points, at_compute, key=lambda point: point.compute) - 1].reward


def past_forecasts(session: Session, run: Run, past: Sequence[PastRun], *, informed: bool, known: bool) -> list[Past]:
    """Forecasts of past runs that were made at about the same share of the budget, and what came.

    One a run, the nearest in share of the budget; of those that had past runs as their prior where `informed`, else of
    those that rested on a run's own evaluations alone: each of the two goes wrong in its own way. Where seeds of the
    run's own arm are `known`, of all; where its arm is new, of one seed of each arm, said when no other seed of it was
    over: errors of runs whose arm was known say nothing of a new arm. Empty for a run without a budget.
    """
    if run.budget_compute is None or run.last_compute is None:
        return []
    share, made = run.last_compute / run.budget_compute, forecasts_made(session, past)
    runs = sorted((one for one in past if len(one.points) >= MIN_POINTS), key=lambda one: one.id)
    near = [(one, nearest(made[one.id], one, share, informed=informed, with_seeds=known)) for one in runs]
    said = _estimates(session, [(one, forecast.id) for one, forecast in near if forecast is not None])
    told = [
        (one, forecast, raw)
        for one, forecast in near
        if forecast is not None and (raw := said[one.version, forecast.id]) is not None
    ]
    if not known:
        arms = told_apart([one.arm for one, _, _ in told])
        told = list(dict(zip(arms, told, strict=True)).values())
    return [
        Past(
            run=one.id,
            fraction=forecast.at_compute / one.budget,
            estimate=raw,
            actual=_ended(one)[0].reward,
            course=_ended(one)[1],
            mates=mates_ended(past, one.arm, one.points[-1].compute, but=one),
        )
        for one, forecast, raw in told
    ]


def mates_ended(past: Sequence[PastRun], arm: str | None, compute: float, *, but: PastRun | None = None) -> Ends:
    """How the seeds of an arm stood when they had spent so much, those that went as far; `but` is not asked."""
    if arm is None:
        return ()
    seeds = {one.seed: one for one in past if one.arm == arm and one is not but}  # a fork has its parent's seed
    courses = [_ended(one)[1] for one in seeds.values() if one.points]
    stood = [stood_at(course.compute, course.reward, compute) for course in courses]
    return tuple(one for one in stood if one is not None)


def _estimates(
    session: Session, wanted: Sequence[tuple[PastRun, str]]
) -> Mapping[tuple[Version, str], Estimate | None]:
    """What forecasts said of the ends of their runs; a forecast does not change, and a run by its version."""
    runs = {(one.version, forecast_id): one for one, forecast_id in wanted}

    def read(missing: Sequence[tuple[Version, str]]) -> dict[tuple[Version, str], Estimate | None]:
        of_forecast = {key[1]: key for key in missing}
        rows = session.execute(_said().where(Forecast.id.in_(of_forecast)))
        return {(key := of_forecast[row.id]): _raw(row, _ended(runs[key])[0]) for row in rows}

    return ESTIMATES.of(runs, read)


@lru_cache(maxsize=RUNS_KEPT)
def _ended(run: PastRun) -> tuple[Outcome, Course]:
    """How it ended, and how it went."""
    return _outcome(run.points), course_of(run.points)


def _of_sweep(query: Select[Any], sweep_id: str | None) -> Select[Any]:
    return query if sweep_id is None else query.where(Run.sweep_id == sweep_id)


def _waiting(session: Session, sweep_id: str | None) -> int:
    """By the index, run after run: few are live, and a join would read every forecast that there is."""
    made = select(func.count()).where(Forecast.run_id == Run.id).correlate(Run).scalar_subquery()
    live = select(func.sum(made)).where(Run.status.not_in(TERMINAL))
    return int(session.scalar(_of_sweep(live, sweep_id)) or 0)


def _outcomes(curves: Mapping[str, Sequence[Point]]) -> dict[str, Outcome]:
    """How the runs ended; those with hardly any evaluations are left out."""
    return {run_id: _outcome(points) for run_id, points in curves.items() if len(points) >= MIN_POINTS}


def _outcome(points: Sequence[Point]) -> Outcome:
    tail = points[-tail_size(len(points)) :]
    reward = float(np.mean([point.reward for point in tail]))
    return Outcome(np.array([point.compute for point in tail]), reward)


# --- what a stored forecast said of the end ---

Said = Row[tuple[str, str, float, float | None, Any, Any, Any]]


def _said() -> Select[tuple[str, str, float, float | None, Any, Any, Any]]:
    """Only what is needed of the rows: summaries are long."""
    return select(
        Forecast.id,
        Forecast.run_id,
        Forecast.at_compute,
        Forecast.summary["last"].as_float().label("last"),
        Forecast.summary["misfit"].label("misfit"),
        Forecast.summary["at_budget"].label("at_budget"),
        Forecast.summary["ends_ahead"].label("ends_ahead"),
    )


def _forecast(row: Said, outcome: Outcome) -> science.Forecast | None:
    """As it was said, in terms of the end; None where it had seen some of the end, or that lies beyond all it foretold.

    Its share is of what the run spent in the end, so that a run without a budget, or stopped early, is scored too. What
    new forecasts learn from (`past_forecasts`) goes by the budget, which is all that is known of a live run.
    """
    raw = _raw(row, outcome)
    if raw is None:
        return None
    conformal = _conformal(row.at_budget)
    return science.Forecast(
        run=row.run_id,
        fraction=row.at_compute / float(outcome.compute[-1]),
        estimate=conformal.apply(raw),
        calibration=conformal.label,
        withheld=row.misfit not in HOLDS,
        id=row.id,
    )


def course_of(points: Sequence[Point]) -> Course:
    """How a run went, as past forecasts are compared by it."""
    return Course(np.array([point.compute for point in points]), np.array([point.reward for point in points]))


def _raw(row: Said, outcome: Outcome) -> Estimate | None:
    """The posterior's median and 90 % interval for the mean of the last evaluations; None where it had seen some."""
    if row.at_compute >= outcome.compute[0]:
        return None
    return end_at(row.ends_ahead, float(outcome.compute[-1]))


def _conformal(at_budget: dict[str, Any] | None) -> Conformal:
    """What was applied when it was said."""
    used = (at_budget or {}).get("conformal")
    if not used:
        return Conformal()
    later = {name: used.get(name, 0.0) for name in ("even", "lean")}  # older ones do not say these
    return Conformal(used["shift"], used["factor"], used["runs"], **later)
