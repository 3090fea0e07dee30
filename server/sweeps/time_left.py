"""When a sweep will be through: its runs that wait take the places of those that end, and as long as these."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.runs.models import Run
from server.runs.pace import LONGEST, budgets_spent_at
from server.runs.states import HOLDS_PLACE, DesiredState, Status

from .models import ALLOCATE, Sweep

_WAITS = (Status.QUEUED, Status.PREEMPTED, Status.LOST)
_ENDS = (Status.STOPPING, Status.PAUSING)


def through_at(session: Session, sweep: Sweep, now: datetime) -> datetime | None:
    """When the budgets of all its runs are spent, at the pace of those that train, in the places that they have now.

    What is to stop or to pause gives its place away soon; paused runs are left out: they wait for a person. None where
    nothing trains, its pace cannot be told, or it would be years; and where compute is allocated, as most budgets will
    never be spent.
    """
    if sweep.policy == ALLOCATE:
        return None
    runs = session.scalars(select(Run).where(Run.sweep_id == sweep.id).order_by(Run.id)).all()
    held = [run for run in runs if run.status in HOLDS_PLACE]
    waiting = [run for run in runs if run.status in _WAITS and _goes_on(run)]
    if not held or not (waiting or any(map(_goes_on, held))):
        return None
    spent_at = budgets_spent_at(session, held, {})
    per_unit = _seconds_a_unit(runs, spent_at, now)
    if per_unit is None:
        return None
    free = [_left(run, spent_at.get(run.id), per_unit, now) for run in held]
    seconds = _last(free, [_takes(run, per_unit) for run in waiting])
    return now + timedelta(seconds=seconds) if seconds < LONGEST.total_seconds() else None


def _goes_on(run: Run) -> bool:
    return run.desired_state == DesiredState.RUN and run.status not in _ENDS


def _seconds_a_unit(runs: Sequence[Run], spent_at: Mapping[str, datetime | None], now: datetime) -> float | None:
    """Of compute, in the median run: of those that are through, as long as they took, and of those that train, as long
    as they will have taken. A run that was paused or tried again has waited, too: there it is its pace of late."""
    found = []
    for run in runs:
        ends = run.finished_at if run.status == Status.SUCCEEDED else spent_at.get(run.id)
        if ends is None or run.started_at is None or not run.budget_compute:
            continue
        begins, done = (run.started_at, 0.0) if run.attempt <= 1 else (now, run.last_compute or 0.0)
        if ends > begins and run.budget_compute > done:
            found.append((ends - begins).total_seconds() / (run.budget_compute - done))
    return median(found) if found else None


def _takes(run: Run, per_unit: float) -> float:
    """Seconds, from its beginning on."""
    return per_unit * (run.budget_compute or 0.0)


def _left(run: Run, spent_at: datetime | None, per_unit: float, now: datetime) -> float:
    """Seconds until its place is free."""
    if not _goes_on(run):
        return 0.0
    if spent_at is not None:
        return max(0.0, (spent_at - now).total_seconds())
    # too little is known of it, or it is silent; one that goes on, from wherever that was, may need all of it
    trained = (now - run.started_at).total_seconds() if run.started_at and run.attempt == 1 else 0.0
    return max(0.0, _takes(run, per_unit) - trained)


def _last(free: Sequence[float], waiting: Sequence[float]) -> float:
    """When the last of them ends, each of which begins as soon as a place is free."""
    places = list(free)
    heapq.heapify(places)
    for takes in waiting:
        heapq.heapreplace(places, places[0] + takes)
    return max(places)
