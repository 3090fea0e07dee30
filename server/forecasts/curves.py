"""What the chart of a run shows, put together with the same few queries for one run or for many."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.alerts.models import Alert
from server.alerts.service import SUPERSEDED
from server.checkpoints.models import Checkpoint
from server.events.service import current_cursor
from server.metrics.curve import Point, validation_curves
from server.metrics.variance import standard_error
from server.runs.models import Run
from server.runs.service import get_run
from server.runs.views import run_views

from .models import Forecast, Recommendation
from .schemas import (
    AlertMark,
    CheckpointMark,
    CurveView,
    ForecastView,
    PointView,
    RecommendationView,
    RefitMark,
    RestartMark,
    RunsCurves,
)

_AS_MADE = Forecast.created_at, Forecast.at_compute, Forecast.id
"""The newest last. One refit may make two, the frozen one of fewer evaluations; ids of one moment are in no order."""


def run_curve(session: Session, run_id: str) -> CurveView:
    """The CurveView of one run."""
    return curve_views(session, [get_run(session, run_id)])[0]


def runs_curves(session: Session, runs: Sequence[Run], *, frozen: bool = True) -> RunsCurves:
    """The curves of any runs, in their order; without `frozen`, no frozen forecasts."""
    units = {run.compute_unit for run in runs}
    return RunsCurves(unit=units.pop() if len(units) == 1 else None, runs=curve_views(session, runs, frozen=frozen))


def curve_views(session: Session, runs: Sequence[Run], *, frozen: bool = True) -> list[CurveView]:
    """CurveViews in the order of `runs`; without `frozen`, no frozen forecasts."""
    # The cursor is read first: what commits while we read is then seen again by who follows the stream from here.
    cursor = current_cursor(session)
    material = _Material.read(session, runs, frozen)
    return [_view(run, view, material, cursor) for run, view in zip(runs, run_views(session, runs), strict=True)]


@dataclass
class _Material:
    """Rows of all the runs, by run; forecasts by their own id."""

    points: dict[str, list[Point]]
    forecasts: dict[str, ForecastView]
    frozen: dict[str, str]  # the id of its frozen forecast, where that is asked for
    checkpoints: dict[str, list[Checkpoint]] = field(default_factory=lambda: defaultdict(list))
    refits: dict[str, list[RefitMark]] = field(default_factory=lambda: defaultdict(list))
    alerts: dict[str, list[AlertMark]] = field(default_factory=lambda: defaultdict(list))
    recommendations: dict[str, RecommendationView] = field(default_factory=dict)

    @classmethod
    def read(cls, session: Session, runs: Sequence[Run], with_frozen: bool) -> _Material:
        ids = [run.id for run in runs]
        frozen = {run.id: run.frozen_forecast_id for run in runs if with_frozen and run.frozen_forecast_id}
        shown = {run.forecast_id for run in runs if run.forecast_id} | set(frozen.values())
        found = cls(validation_curves(session, ids), _forecasts(session, shown), frozen)
        steps = Checkpoint.run_id, Checkpoint.step, Checkpoint.attempt
        for checkpoint in session.scalars(select(Checkpoint).where(Checkpoint.run_id.in_(ids)).order_by(*steps)):
            found.checkpoints[checkpoint.run_id].append(checkpoint)
        refits = select(Forecast.run_id, Forecast.id, Forecast.at_compute, Forecast.created_at)
        for run_id, id_, at_compute, created_at in session.execute(
            refits.where(Forecast.run_id.in_(ids)).order_by(*_AS_MADE)
        ):
            found.refits[run_id].append(RefitMark(id=id_, at_compute=at_compute, created_at=created_at))
        on_the_curve = Alert.run_id.in_(ids), ~SUPERSEDED
        for alert in session.scalars(select(Alert).where(*on_the_curve).order_by(Alert.id)):
            found.alerts[alert.run_id].append(AlertMark.model_validate(alert))
        is_open = Recommendation.run_id.in_(ids), Recommendation.status == "open"
        for advice in session.scalars(select(Recommendation).where(*is_open)):
            found.recommendations[advice.run_id] = RecommendationView.model_validate(advice)
        return found


def _refits(marks: Sequence[RefitMark], frozen: str | None) -> list[RefitMark]:
    """Without the frozen forecast where another was said of the same evaluations, with past runs as its prior."""
    said = {mark.at_compute for mark in marks if mark.id != frozen}
    return [mark for mark in marks if mark.id != frozen or mark.at_compute not in said]


def _forecasts(session: Session, ids: Iterable[str]) -> dict[str, ForecastView]:
    rows = session.scalars(select(Forecast).where(Forecast.id.in_(ids)))
    return {row.id: ForecastView.of(row) for row in rows}


def _view(run: Run, view: Any, material: _Material, cursor: int) -> CurveView:
    points = material.points[run.id]
    checkpoints = material.checkpoints[run.id]
    return CurveView(
        run=view,
        unit=run.compute_unit,
        budget=run.budget_compute,
        points=[point_view(point) for point in points],
        forecast=material.forecasts.get(run.forecast_id or ""),
        frozen=material.forecasts.get(material.frozen.get(run.id, "")),
        checkpoints=[CheckpointMark(step=c.step, compute=c.compute, digest=c.digest) for c in checkpoints],
        restarts=restart_marks(points, checkpoints),
        refits=_refits(material.refits[run.id], run.frozen_forecast_id),
        alerts=material.alerts[run.id],
        recommendation=material.recommendations.get(run.id),
        cursor=cursor,
    )


def point_view(point: Point) -> PointView:
    return PointView(
        step=point.step,
        attempt=point.attempt,
        compute=point.compute,
        reward=point.reward,
        se=_short(standard_error(point)),
        time=point.time,
        tokens=point.tokens,
    )


def _short(error: float | None) -> float | None:
    """Four significant digits, of which two are shown: the others would be a third of what a long curve weighs."""
    return None if error is None else float(f"{error:.4g}")


def restart_marks(points: Sequence[Point], checkpoints: Sequence[Checkpoint]) -> list[RestartMark]:
    """One mark per attempt after the first that has evaluations in the curve; the first follows where a fork began."""
    firsts: dict[int, Point] = {}
    for point in points:
        firsts.setdefault(point.attempt, point)
    return [_restart(first, checkpoints) for number, first in sorted(firsts.items()) if number > min(firsts)]


def _restart(first: Point, checkpoints: Sequence[Checkpoint]) -> RestartMark:
    older = [c for c in checkpoints if c.attempt < first.attempt and c.step <= first.step and c.compute is not None]
    came_from = max(older, key=lambda c: (c.attempt, c.step), default=None)
    if came_from is None or came_from.compute is None:
        return RestartMark(attempt=first.attempt, step=first.step, compute=first.compute)
    return RestartMark(attempt=first.attempt, step=came_from.step, compute=came_from.compute)
