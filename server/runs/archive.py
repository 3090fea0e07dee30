"""What people do with runs for their own order: give another name, task, tags, a note, put away what is over, take it
out again.

An archived run keeps all that it has. It is left out of lists, its alerts and advice are out of the inbox and of every
count, and no forecast learns from it. Its sweep keeps it: without a run that did not please, a comparison would say
another thing.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from server.errors import Conflict
from server.labels.service import relabel
from server.metrics.dirty import mark_dirty

from .history import record_of
from .models import Run
from .schemas import RunChange
from .service import is_over, lock_run


def change(session: Session, run_id: str, body: RunChange, *, actor: str, now: datetime) -> Run:
    """Give the run another name, task, tags or note. The same ones change nothing.

    With another task, other runs tell of it: one that is not over is forecast anew at once.

    Raises:
        Conflict: the task is not its own to name: its recipe has it, or its arm needs one.
        Invalid: it would have too many tags.
    """
    run = lock_run(session, run_id)
    if "task" in body.model_fields_set:
        _retask(session, run, body.task, actor, now)
    if "name" in body.model_fields_set and body.name != run.name:
        record_of(session, run, "run.renamed", actor=actor, from_state=run.name, to_state=body.name)
        run.name = body.name
    for changed in relabel(run, body):
        record_of(session, run, f"run.{changed.kind}", actor=actor, **changed.said)
    session.flush()
    return run


def _retask(session: Session, run: Run, task: str | None, actor: str, now: datetime) -> None:
    if run.recipe_id is not None:
        raise Conflict.field("task", task, f"run {run.id} has a recipe, which says its task; fork it to change that")
    if task is None and run.arm is not None:
        raise Conflict.field("task", task, f"run {run.id} is of arm `{run.arm}`, which is one of a task; name another")
    if task != run.task:
        record_of(session, run, "run.retasked", actor=actor, from_state=run.task, to_state=task)
        run.task = task
        if not is_over(run) and run.last_compute is not None:
            mark_dirty(session, run, now)


def archive(session: Session, run_id: str, *, actor: str, now: datetime) -> Run:
    """Put the run away. A second time changes nothing.

    Raises:
        Conflict: the run is not over.
    """
    run = lock_run(session, run_id)
    if not is_over(run):
        message = f"run {run.id} is {run.status}; only what is over can be archived, so stop it first"
        raise Conflict.field("status", run.status, message, state=run.status)
    put_away(session, run, actor=actor, now=now)
    session.flush()
    return run


def put_away(session: Session, run: Run, *, actor: str, now: datetime) -> None:
    """The same of a run that is over and held."""
    if run.archived_at is None:
        run.archived_at = now
        record_of(session, run, "run.archived", actor=actor)


def restore(session: Session, run_id: str, *, actor: str) -> Run:
    """Take the run out of the archive. What was never there stays as it is."""
    run = lock_run(session, run_id)
    take_out(session, run, actor=actor)
    session.flush()
    return run


def take_out(session: Session, run: Run, *, actor: str) -> None:
    """The same of a run that is held."""
    if run.archived_at is not None:
        run.archived_at = None
        record_of(session, run, "run.restored", actor=actor)
