"""The comparison of a sweep's arms with its control: asked for when a forecast changes, read by pages and the API.

The worker makes it, because it costs more than a page may (some 0.07 s a run).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from server.events.outbox import enqueue
from server.runs.models import Run

from .models import ALLOCATE, Sweep, SweepComparison
from .schemas import ComparisonView

COMPARE_TASK = "worker.tasks.compare"


def ask_for_comparison(session: Session, sweep_id: str, now: datetime) -> None:
    """Have the sweep compared anew, once its last comparison has rested.

    `dirty_at` always moves, so that a comparison in flight sees that more has come.
    """
    session.execute(insert(SweepComparison).values(sweep_id=sweep_id).on_conflict_do_nothing())
    row = session.get_one(SweepComparison, sweep_id, with_for_update=True, populate_existing=True)
    if row.dirty_at is None:
        enqueue(session, COMPARE_TASK, sweep_id, not_before=max(now, row.not_before or now))
        row.dirty_at = now
    else:
        row.dirty_at = max(now, row.dirty_at + timedelta(microseconds=1))
    session.flush()


def ask_for_allocation(session: Session, run: Run, now: datetime) -> None:
    """Have the compute allocated anew that runs of a sweep share, where `run` is of such a sweep and came to an end or
    a pause, or has spent more without a forecast. `run` is locked. Comparisons allocate, too."""
    if run.sweep_id is not None and session.get_one(Sweep, run.sweep_id).policy == ALLOCATE:
        ask_for_comparison(session, run.sweep_id, now)


def read_comparison(session: Session, sweep_id: str) -> tuple[ComparisonView | None, str | None]:
    """The newest comparison, and where there is none the reason as far as one is known."""
    row = session.get(SweepComparison, sweep_id)
    if row is None:
        return None, None
    if row.result is None:
        return None, row.note
    return ComparisonView(**row.result, compared_at=row.compared_at, seconds=row.seconds), None
