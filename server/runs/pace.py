"""When a run will have spent its budget, if it goes on as it did lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from server.metrics.models import Evaluation

from .models import Run
from .schemas import Progress
from .states import Status

_LATELY = 6  # evaluations
_LEAST = 3
_SHORTEST = timedelta(seconds=1)  # what a follower reports at once came at no pace
_LONGEST = timedelta(days=3650)


class _Pace(NamedTuple):
    """Of the newest evaluations of a run: the least and the most compute, the first and the last time."""

    run_id: str
    first: float
    last: float
    began: datetime
    ended: datetime


def budgets_spent_at(
    session: Session, runs: Sequence[Run], progress: Mapping[str, Progress]
) -> dict[str, datetime | None]:
    """By the newest evaluations of their attempts, of those runs that are on their way to a budget. One query."""
    budgets = {run.id: run.budget_compute for run in runs if run.status == Status.RUNNING and run.budget_compute}
    paces = _paces(session, list(budgets)) if budgets else []
    return {pace.run_id: _spent_at(budgets[pace.run_id], pace, progress.get(pace.run_id)) for pace in paces}


def _paces(session: Session, run_ids: Sequence[str]) -> list[_Pace]:
    newest = select(Evaluation).where(Evaluation.run_id == Run.id, Evaluation.attempt == Run.attempt)
    lately = aliased(Evaluation, newest.order_by(Evaluation.step.desc()).limit(_LATELY).lateral())
    compute, time = lately.compute, lately.time
    extremes = func.min(compute), func.max(compute), func.min(time), func.max(time)
    query = select(Run.id, *extremes).join(lately, lately.run_id == Run.id).where(Run.id.in_(run_ids))
    return [_Pace(*row) for row in session.execute(query.group_by(Run.id).having(func.count() >= _LEAST))]


def _spent_at(budget: float, pace: _Pace, progress: Progress | None) -> datetime | None:
    """None where no pace can be told, or it would be years."""
    at, when = pace.last, pace.ended
    if progress and progress.heartbeat_at and progress.compute is not None and progress.compute > at:
        at, when = progress.compute, progress.heartbeat_at
    took = pace.ended - pace.began
    if pace.last <= pace.first or took < _SHORTEST:
        return None
    left_s = max(budget - at, 0.0) / (pace.last - pace.first) * took.total_seconds()
    return when + timedelta(seconds=left_s) if left_s < _LONGEST.total_seconds() else None
