"""Keeping note of checkpoints: where they lie and what proves them whole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.errors import Conflict
from server.pagination import newest_first
from server.runs.fencing import check_reporter, check_wanted
from server.runs.history import record_of
from server.runs.reports import TRAINER, mark_alive
from server.runs.service import current_attempt, get_run, lock_run

from .models import Checkpoint
from .schemas import CheckpointCreate

_CONTENT = ("compute", "path", "digest", "size_bytes")


def add_checkpoint(session: Session, run_id: str, body: CheckpointCreate, *, now: datetime) -> Checkpoint:
    """Keep note of a checkpoint. Said twice, it is one.

    Raises:
        Conflict: this attempt reported another checkpoint at the step; Superseded, Over: no longer wanted.
    """
    run = lock_run(session, run_id)
    check_reporter(run, body)
    mine = Checkpoint.run_id == run.id, Checkpoint.attempt == body.attempt, Checkpoint.step == body.step
    known = session.scalar(select(Checkpoint).where(*mine))
    if known is not None:
        return _same(known, body)
    check_wanted(run, body)
    mark_alive(session, run, current_attempt(session, run), now)
    checkpoint = Checkpoint(run_id=run.id, **body.model_dump(exclude={"handed_in_by"}), created_at=now)
    session.add(checkpoint)
    session.flush()
    record_of(session, run, "checkpoint", actor=TRAINER, attempt=body.attempt, step=body.step, digest=body.digest)
    return checkpoint


def list_checkpoints(
    session: Session, run_id: str, *, cursor: str | None, limit: int
) -> tuple[Sequence[Checkpoint], str | None]:
    """One page of a run's checkpoints, newest first."""
    get_run(session, run_id)
    return newest_first(session, select(Checkpoint).where(Checkpoint.run_id == run_id), Checkpoint.id, cursor, limit)


def _same(known: Checkpoint, body: CheckpointCreate) -> Checkpoint:
    for name in _CONTENT:
        if getattr(known, name) != getattr(body, name):
            message = f"attempt {body.attempt} has reported another checkpoint at step {body.step}; steps count on"
            raise Conflict.field(name, getattr(body, name), message)
    return known
