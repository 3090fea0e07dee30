"""Pausing: a run gives its place away, and goes on from its newest checkpoint in another attempt when it is resumed.

Its trainer ends as for a stop, so whoever pauses waits for a step, an evaluation and a checkpoint. Where no trainer is
at work there is nothing to wait for: the run is paused here, at once.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.checkpoints.models import Checkpoint
from server.errors import Conflict
from server.events.outbox import enqueue
from server.sweeps.comparisons import ask_for_allocation

from .fencing import WAITING, over
from .lifecycle import transition
from .models import Run
from .service import ADMIT_TASK, is_over, leave_to, lock_run, want
from .states import DesiredState, Status


def pause_run(session: Session, run_id: str, *, actor: str, reason: str | None, now: datetime) -> Run:
    """Want the run to pause. One that is paused, or about to be, stays as it is; held by its sweep, it is its user's
    from then on.

    Raises:
        NotFound: no such run.
        Over: it is over already.
        Conflict: it was launched by its user, or is to stop.
    """
    run = lock_run(session, run_id)
    _check_may_pause(run)
    if run.desired_state == DesiredState.PAUSE:
        if run.allocated:
            leave_to(actor, run)
            ask_for_allocation(session, run, now)  # others may go on in its stead
        return run
    want(session, run, DesiredState.PAUSE, actor=actor, reason=reason)
    if Status(run.status) in WAITING:
        said = f": {reason.rstrip('.')}" if reason else ""
        why = f"Paused as asked while it was {run.status}{said}. {goes_on_from(session, run)}"
        transition(session, run, Status.PAUSED, actor=actor, reason=why, now=now)
    return run


def resume_run(session: Session, run_id: str, *, actor: str, now: datetime, reason: str = "Resumed.") -> Run:
    """Queue a paused run: its next attempt goes on from its newest checkpoint.

    Raises:
        NotFound: no such run.
        Over: it is over already.
        Conflict: it is not paused, or not yet; it is to stop.
    """
    run = lock_run(session, run_id)
    _check_may_resume(run)
    want(session, run, DesiredState.RUN, actor=actor, reason=None)
    run.not_before = None  # whatever it waited for before the pause
    transition(session, run, Status.QUEUED, actor=actor, reason=reason, now=now)
    enqueue(session, ADMIT_TASK)
    return run


def goes_on_from(session: Session, run: Run) -> str:
    """Where the next attempt of a run will begin, in a sentence."""
    newest = select(Checkpoint.step).where(Checkpoint.run_id == run.id)
    step = session.scalar(newest.order_by(Checkpoint.attempt.desc(), Checkpoint.step.desc()).limit(1))
    if step is not None:
        return f"Resumed, it goes on from its checkpoint of step {step}."
    begins = f"its parent's checkpoint of step {run.parent_step}" if run.parent_step is not None else "step 0"
    again = " again" if run.attempt else ""
    return f"It has no checkpoint of its own: resumed, it begins{again} at {begins}."


def _check_may_pause(run: Run) -> None:
    if is_over(run):
        raise over(run)
    if run.executor == "external":
        message = "it was launched by you, and the service could not start it again; pause it where it runs"
        raise Conflict.field("executor", run.executor, f"run {run.id} cannot be paused here: {message}")
    if run.desired_state not in (DesiredState.RUN, DesiredState.PAUSE):
        raise _is_to_end(run)


def _check_may_resume(run: Run) -> None:
    if is_over(run):
        raise over(run)
    if run.executor == "external":
        message = f"it was launched by you; where it runs, `forecurve.init(..., resume='{run.id}')` goes on with it"
        raise Conflict.field("executor", run.executor, f"run {run.id} cannot be resumed here: {message}")
    if run.desired_state not in (DesiredState.RUN, DesiredState.PAUSE):
        raise _is_to_end(run)
    if run.desired_state == DesiredState.PAUSE and run.status != Status.PAUSED:
        message = f"run {run.id} is still on its way to its pause: resume it when its status is paused"
        raise Conflict.field("status", run.status, message, state=run.status)
    if run.status != Status.PAUSED:
        message = f"run {run.id} is {run.status}: only a paused run can be resumed"
        raise Conflict.field("status", run.status, message, state=run.status)


def _is_to_end(run: Run) -> Conflict:
    message = f"run {run.id} is to {run.desired_state}, and that stands; when it is over, fork it to go on"
    return Conflict.field("desired_state", run.desired_state, message, state=run.status)
