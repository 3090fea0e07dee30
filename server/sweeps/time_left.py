"""When a sweep will be through: its runs that wait take the places of those that end, and as long as these."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.runs.models import Run
from server.runs.pace import budgets_spent_at
from server.runs.states import HOLDS_PLACE, Status

_WAITS = (Status.QUEUED, Status.PREEMPTED, Status.LOST)


def through_at(session: Session, sweep_id: str, now: datetime) -> datetime | None:
    """When the budgets of all its runs are spent, at the pace of those that train, in the places that they have now.

    Paused runs are left out: they wait for a person. None where nothing trains, or its pace cannot be told.
    """
    runs = session.scalars(select(Run).where(Run.sweep_id == sweep_id).order_by(Run.id)).all()
    held = [run for run in runs if run.status in HOLDS_PLACE]
    if not held:
        return None
    spent_at = budgets_spent_at(session, held, {})
    per_unit = _seconds_a_unit(runs, spent_at)
    if per_unit is None:
        return None
    free = [max(now, spent_at.get(run.id) or now + _takes(run, per_unit)) for run in held]
    return _last(free, [_takes(run, per_unit) for run in runs if run.status in _WAITS])


def _seconds_a_unit(runs: Sequence[Run], spent_at: Mapping[str, datetime | None]) -> float | None:
    """Of compute, in the median run: of those that are through and of those that train, as long as they will have
    taken."""
    found = []
    for run in runs:
        ends = run.finished_at if run.status == Status.SUCCEEDED else spent_at.get(run.id)
        if ends is not None and run.started_at is not None and run.budget_compute:
            found.append((ends - run.started_at).total_seconds() / run.budget_compute)
    return median(found) if found else None


def _takes(run: Run, per_unit: float) -> timedelta:
    return timedelta(seconds=per_unit * (run.budget_compute or 0.0))


def _last(free: Sequence[datetime], waiting: Sequence[timedelta]) -> datetime:
    """When the last of them ends, each of which begins as soon as a place is free."""
    places = list(free)
    heapq.heapify(places)
    for takes in waiting:
        heapq.heapreplace(places, places[0] + takes)
    return max(places)
