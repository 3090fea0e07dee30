"""When a run will have spent its budget, if it goes on as it did lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from server.metrics.models import Evaluation

from .models import Run
from .schemas import Progress
from .states import Status

_LATELY = 6  # evaluations
_LEAST = 3  # at times of their own
_AT_ONCE = timedelta(milliseconds=50)  # what a follower reports when it catches up came at no pace
LONGEST = timedelta(days=3650)
"""Whatever would take longer is not foretold."""


class _Point(NamedTuple):
    """Compute spent, and when."""

    compute: float
    time: datetime


def budgets_spent_at(
    session: Session, runs: Sequence[Run], progress: Mapping[str, Progress]
) -> dict[str, datetime | None]:
    """By the newest evaluations of their attempts, of those runs that are on their way to a budget. One query."""
    budgets = {run.id: run.budget_compute for run in runs if run.status == Status.RUNNING and run.budget_compute}
    lately = _lately(session, list(budgets)) if budgets else {}
    return {run_id: _spent_at(budgets[run_id], points, progress.get(run_id)) for run_id, points in lately.items()}


def _lately(session: Session, run_ids: Sequence[str]) -> dict[str, list[_Point]]:
    """The newest evaluations of each run, oldest first; of those that came at once the last."""
    newest = select(Evaluation).where(Evaluation.run_id == Run.id, Evaluation.attempt == Run.attempt)
    of_run = aliased(Evaluation, newest.order_by(Evaluation.step.desc()).limit(_LATELY).lateral())
    query = select(Run.id, of_run.compute, of_run.time).join(of_run, of_run.run_id == Run.id)
    points: dict[str, list[_Point]] = {}
    for run_id, compute, time in session.execute(query.where(Run.id.in_(run_ids)).order_by(Run.id, of_run.step)):
        mine = points.setdefault(run_id, [])
        if mine and time - mine[-1].time < _AT_ONCE:
            mine.pop()
        mine.append(_Point(compute, time))
    return points


def _spent_at(budget: float, lately: Sequence[_Point], progress: Progress | None) -> datetime | None:
    """None where no pace can be told, or it would be years."""
    if len(lately) < _LEAST or lately[-1].compute <= lately[0].compute:
        return None
    first, last = lately[0], lately[-1]
    at, when = last
    if progress and progress.heartbeat_at and progress.compute is not None and progress.compute > at:
        at, when = progress.compute, progress.heartbeat_at
    took_s = (last.time - first.time).total_seconds()
    left_s = max(budget - at, 0.0) / (last.compute - first.compute) * took_s
    return when + timedelta(seconds=left_s) if left_s < LONGEST.total_seconds() else None
