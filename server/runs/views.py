"""A run as people see it, put together with the same few queries for one run or a thousand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Row, and_, func, or_, select
from sqlalchemy.orm import Session

from server.alerts.models import BELOW_FORECAST, Alert
from server.alerts.service import SUPERSEDED
from server.forecasts.ending import ending_ahead, is_withheld
from server.forecasts.models import Forecast

from .models import Attempt, Run
from .pace import budgets_spent_at
from .schemas import AdviceView, Interval, Parent, Progress, RunView
from .sentence import ended_sentence, with_forecast, without_forecast
from .service import is_over, may_follow


def run_views(session: Session, runs: Sequence[Run]) -> list[RunView]:
    """The views of `runs`, in their order. Four queries, however many runs."""
    forecasts = _forecasts(session, runs)
    alerts = _alerts(session, runs)
    progress = _progress(session, runs)
    spent_at = budgets_spent_at(session, runs, progress)
    return [
        _view(
            run,
            forecasts.get(run.forecast_id or ""),
            alerts.get(run.id, _NONE),
            progress.get(run.id, Progress()),
            spent_at.get(run.id),
        )
        for run in runs
    ]


def run_view(session: Session, run: Run) -> RunView:
    return run_views(session, [run])[0]


class _Alerts(NamedTuple):
    """Of one run: how many are open, and from which compute on it was below its forecast when it ended."""

    open: int
    fell_at: float | None


_NONE = _Alerts(0, None)


def _view(
    run: Run, forecast: Row[Any] | None, alerts: _Alerts, progress: Progress, spent_at: datetime | None
) -> RunView:
    summary: dict[str, Any] = forecast.summary if forecast else {}
    at_budget, withheld = summary.get("at_budget"), is_withheld(summary)
    over = is_over(run)
    return RunView(
        **{name: getattr(run, name) for name in _COLUMNS},
        parent=parent_of(run),
        ceiling=None if withheld else Interval.of(summary.get("A")),
        headroom=None if withheld else Interval.of(summary.get("headroom")),
        identified=(summary.get("identified") or {}).get("A"),
        ceiling_known=bool(summary.get("ceiling_known")),
        misfit=summary.get("misfit"),
        withheld=withheld,
        at_budget=Interval.of(at_budget["curve"]) if at_budget else None,
        ending=ending_ahead(summary, run.last_compute or 0, over=over),
        advice=None if run.import_digest is not None else _advice(run, summary),  # nothing of it can go on here
        sentence=_sentence(run, forecast, over, progress, alerts.fell_at),
        open_alerts=alerts.open,
        fell_at=alerts.fell_at,
        budget_spent_at=spent_at,
        progress=progress,
    )


_COLUMNS = tuple(name for name in RunView.model_fields if name in Run.__mapper__.columns)


def parent_of(run: Run) -> Parent | None:
    """Where a fork began; None for any other run."""
    if run.parent_run_id is None:
        return None
    return Parent(run_id=run.parent_run_id, checkpoint_id=run.parent_checkpoint_id, step=run.parent_step)


def _advice(run: Run, summary: dict[str, Any]) -> AdviceView | None:
    advice = summary.get("advice")
    if advice is None or not may_follow(run, advice["action"]):
        return None
    return AdviceView(action=advice["action"], reason=advice["reason"])


def _sentence(run: Run, forecast: Row[Any] | None, over: bool, progress: Progress, fell_at: float | None) -> str:
    if forecast is None:
        return without_forecast(run, progress.message)
    said = ended_sentence(run, forecast.summary, fell_at) if over else forecast.sentence
    return with_forecast(run, said, forecast.at_compute)


def _forecasts(session: Session, runs: Sequence[Run]) -> dict[str, Row[Any]]:
    ids = [run.forecast_id for run in runs if run.forecast_id]
    if not ids:
        return {}
    columns = Forecast.id, Forecast.summary, Forecast.sentence, Forecast.at_compute
    rows = session.execute(select(*columns).where(Forecast.id.in_(ids)))
    return {row.id: row for row in rows}


def _alerts(session: Session, runs: Sequence[Run]) -> dict[str, _Alerts]:
    """What a person resolved before the run ended is settled; what its end resolved (see `resolve_if_over`) is told,
    unless the run was back by then, or had gone on from before it."""
    is_open = Alert.resolved_at.is_(None), Run.archived_at.is_(None)
    told = or_(Alert.resolved_at.is_(None), Alert.resolved_at >= Run.finished_at)
    fell = Alert.kind == BELOW_FORECAST, Alert.level == "ALERT", Run.finished_at.is_not(None), told
    down = *fell, Alert.back_since.is_(None), ~SUPERSEDED
    found = select(
        Alert.run_id, func.count().filter(*is_open).label("open"), func.min(Alert.since_compute).filter(*down)
    )
    mine = Alert.run_id.in_([run.id for run in runs])
    rows = session.execute(found.join(Run, Run.id == Alert.run_id).where(mine).group_by(Alert.run_id))
    return {run_id: _Alerts(open_, fell_at) for run_id, open_, fell_at in rows}


def _progress(session: Session, runs: Sequence[Run]) -> dict[str, Progress]:
    current = [run.id for run in runs if run.attempt]
    if not current:
        return {}
    found = select(Attempt.run_id, Attempt.progress, Attempt.last_heartbeat_at)
    newest = Run.id == Attempt.run_id, Run.attempt == Attempt.number
    rows = session.execute(found.join(Run, and_(*newest)).where(Run.id.in_(current)))
    return {row.run_id: _said(row.progress, row.last_heartbeat_at) for row in rows}


def _said(progress: dict[str, Any], heartbeat_at: Any) -> Progress:
    known = {name: progress.get(name) for name in ("step", "compute", "message")}
    return Progress(**known, heartbeat_at=heartbeat_at)
