"""What a trainer reports of its attempt besides metrics: that it lives, and how it ended."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from server.errors import Conflict
from server.events.outbox import enqueue

from . import fencing
from .forks import held_steps
from .history import record_of
from .lifecycle import transition
from .models import Attempt, Run
from .schemas import Heartbeat, HeartbeatAnswer, Outcome
from .service import RECONCILE_TASK, current_attempt, is_over, lock_run
from .states import DesiredState, Status

TRAINER = "trainer"
"""Who the events of a report name as their actor."""


def heartbeat(session: Session, run_id: str, beat: Heartbeat, *, interval_s: float, now: datetime) -> HeartbeatAnswer:
    """Keep the sign of life and answer whether to go on. Also a run that is over answers: stop."""
    run = lock_run(session, run_id)
    fencing.check_exists(run, beat.attempt)
    attempt = current_attempt(session, run, beat.attempt)
    attempt.last_heartbeat_at = now
    said = beat.model_dump(include={"step", "compute", "message"}, exclude_none=True)
    attempt.progress = {**attempt.progress, **said}
    reason = _why_stop(run, beat.attempt)
    if not is_over(run) and fencing.given_up(run, beat.attempt) is None:
        mark_alive(session, run, attempt, now)
    held = held_steps(session, run)
    stop = reason is not None
    return HeartbeatAnswer(stop=stop, reason=reason, interval_s=interval_s, server_time=now, held_steps=held)


def mark_alive(session: Session, run: Run, attempt: Attempt, now: datetime) -> None:
    """The current attempt has reported: it has started, and the run runs (again).

    `run` must be locked, and its attempt wanted (`fencing.check_wanted`).
    """
    attempt.last_heartbeat_at = now
    if attempt.started_at is None:
        attempt.started_at = now
    status = Status(run.status)
    if status in (Status.LAUNCHING, Status.QUEUED):
        transition(session, run, Status.RUNNING, actor=TRAINER, reason=None, now=now)
    elif status is Status.SUSPECT:
        transition(session, run, Status.RUNNING, actor=TRAINER, reason="it reports again", now=now)


def take_outcome(session: Session, run_id: str, outcome: Outcome, *, now: datetime) -> Attempt:
    """Keep how the attempt ended, by its own word. The reconciler ends the run. Said twice, it changes nothing.

    What is handed in for an earlier attempt is kept with it and ends nothing: the run has gone on since.

    Raises:
        Conflict: the attempt reported another outcome before.
        Superseded, Over: the report is no longer wanted.
    """
    run = lock_run(session, run_id)
    fencing.check_reporter(run, outcome)
    attempt = current_attempt(session, run, outcome.attempt)
    if attempt.outcome is not None:
        if attempt.outcome != outcome.outcome:
            message = f"attempt {attempt.number} has reported {attempt.outcome!r}; an outcome does not change"
            raise Conflict.field("outcome", outcome.outcome, message)
        return attempt
    fencing.check_wanted(run, outcome)
    attempt.outcome, attempt.outcome_reason, attempt.exit_code = outcome.outcome, outcome.reason, outcome.exit_code
    if outcome.handed_in_by is None:
        attempt.last_heartbeat_at = attempt.ended_at = now
        enqueue(session, RECONCILE_TASK, run.id)
    record_of(
        session,
        run,
        "attempt.outcome",
        actor=TRAINER,
        to_state=outcome.outcome,
        reason=outcome.reason,
        attempt=attempt.number,
        exit_code=outcome.exit_code,
    )
    session.flush()
    return attempt


def _why_stop(run: Run, attempt: int) -> str | None:
    """Why the trainer should stop, None when it should not."""
    if is_over(run):
        return f"The run is over: {run.status}{f' ({run.reason})' if run.reason else ''}."
    gone = fencing.given_up(run, attempt)
    if gone is not None:
        return f"{gone[0].upper()}{gone[1:]}."
    wanted = DesiredState(run.desired_state)
    if wanted is DesiredState.RUN:
        return None
    why = (run.desired_reason or "").rstrip(" .")
    return f"The run is to {wanted}{f': {why}' if why else ''}."
