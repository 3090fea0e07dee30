"""Runs with evaluations that no forecast has seen yet are dirty, until a refit has."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from server.events.outbox import enqueue
from server.runs.models import Run

REFIT_TASK = "worker.tasks.refit"


def mark_dirty(session: Session, run: Run, now: datetime) -> None:
    """Ask for a refit, unless one is asked for already: that one will see these evaluations too.

    `dirty_at` always moves, so that a refit in flight sees that more has come.
    """
    if run.dirty_at is None:
        enqueue(session, REFIT_TASK, run.id)
        run.dirty_at = run.dirty_since = now
    else:
        run.dirty_at = max(now, run.dirty_at + timedelta(microseconds=1))
    session.flush()
