"""Sweeps that are over are put away with their runs, and taken out again with those that went with them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from server.errors import Conflict
from server.events.service import record
from server.runs.archive import put_away, take_out
from server.runs.service import is_over

from .models import Sweep
from .service import lock_whole


def archive_sweep(session: Session, sweep_id: str, *, actor: str, now: datetime) -> Sweep:
    """Put the sweep away, and those of its runs that are not put away yet. A second time changes nothing.

    Raises:
        Conflict: one of its runs is not over.
    """
    sweep, runs = lock_whole(session, sweep_id)
    going = [run for run in runs if not is_over(run)]
    if going:
        message = f"{len(going)} of its {len(runs)} runs are not over; only what is over can be archived, so stop it"
        raise Conflict.field("status", going[0].status, message, state=going[0].status)
    if sweep.archived_at is None:
        sweep.archived_at = now
        record(session, "sweep.archived", actor=actor, sweep_id=sweep.id)
        for run in runs:
            put_away(session, run, actor=actor, now=now)
        session.flush()
    return sweep


def restore_sweep(session: Session, sweep_id: str, *, actor: str) -> Sweep:
    """Take the sweep out of the archive, with the runs that went there with it. What was never there stays."""
    sweep, runs = lock_whole(session, sweep_id)
    if sweep.archived_at is not None:
        with_it, sweep.archived_at = sweep.archived_at, None
        record(session, "sweep.restored", actor=actor, sweep_id=sweep.id)
        for run in runs:
            if run.archived_at == with_it:
                take_out(session, run, actor=actor)
        session.flush()
    return sweep
