"""What people do with runs for their own order: give another name or task, put away what is over, take it out again.

An archived run keeps all that it has. It is left out of lists, its alerts are out of the inbox and of every count, and
no forecast learns from it. Its sweep keeps it: without a run that did not please, a comparison would say another thing.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from server.errors import Conflict
from server.events.service import record

from .models import Run
from .schemas import RunChange
from .service import is_over, lock_run


def change(session: Session, run_id: str, body: RunChange, *, actor: str) -> Run:
    """Give the run another name or task. The same ones change nothing.

    Raises:
        Conflict: the task is not its own to name: its recipe has it, or its arm needs one.
    """
    run = lock_run(session, run_id)
    if "task" in body.model_fields_set:
        _retask(session, run, body.task, actor)
    if "name" in body.model_fields_set and body.name != run.name:
        _record(session, run, "run.renamed", actor, from_state=run.name, to_state=body.name)
        run.name = body.name
    session.flush()
    return run


def _retask(session: Session, run: Run, task: str | None, actor: str) -> None:
    if run.recipe_id is not None:
        raise Conflict.field("task", task, f"run {run.id} has a recipe, which says its task; fork it to change that")
    if task is None and run.arm is not None:
        raise Conflict.field("task", task, f"run {run.id} is of arm `{run.arm}`, which is one of a task; name another")
    if task != run.task:
        _record(session, run, "run.retasked", actor, from_state=run.task, to_state=task)
        run.task = task


def archive(session: Session, run_id: str, *, actor: str, now: datetime) -> Run:
    """Put the run away. A second time changes nothing.

    Raises:
        Conflict: the run is not over.
    """
    run = lock_run(session, run_id)
    if not is_over(run):
        message = f"run {run.id} is {run.status}; only what is over can be archived, so stop it first"
        raise Conflict.field("status", run.status, message, state=run.status)
    if run.archived_at is None:
        run.archived_at = now
        _record(session, run, "run.archived", actor)
        session.flush()
    return run


def restore(session: Session, run_id: str, *, actor: str) -> Run:
    """Take the run out of the archive. What was never there stays as it is."""
    run = lock_run(session, run_id)
    if run.archived_at is not None:
        run.archived_at = None
        _record(session, run, "run.restored", actor)
        session.flush()
    return run


def _record(
    session: Session, run: Run, kind: str, actor: str, *, from_state: str | None = None, to_state: str | None = None
) -> None:
    record(
        session,
        kind,
        actor=actor,
        run_id=run.id,
        sweep_id=run.sweep_id,
        from_state=from_state,
        to_state=to_state,
    )
