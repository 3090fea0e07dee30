"""Carrying a decision into the database, in the caller's transaction; and keeping what the executor showed."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from forecurve.science.wording import compute_text
from server.alerts.service import open_alert, resolve_if_over
from server.events.outbox import enqueue
from server.forecasts.recommendations import supersede_if_over
from server.metrics.dirty import REFIT_TASK
from server.mlflow.curves import settle_ended
from server.runs.history import record_of
from server.runs.lifecycle import transition
from server.runs.models import Attempt, Run
from server.runs.pausing import goes_on_from
from server.runs.sentence import brief
from server.runs.service import ADMIT_TASK
from server.runs.states import HOLDS_PLACE, TERMINAL, UNASKED, Status
from server.sweeps.comparisons import ask_for_comparison
from worker.case import Decision
from worker.executors.base import ALIVE, OVER, Observation, State, Submitted, reference_of
from worker.launch import record_submission

ACTOR = "reconciler"


def note(attempt: Attempt | None, seen: Observation | None, now: datetime) -> bool:
    """Keep on the attempt what the executor showed; whether that is news.

    `observed_at` is when the executor first said so. `ended_at` is when the job was first seen over, unless the trainer
    had said so before.
    """
    if attempt is None or seen is None:
        return False
    if seen.state is State.UNREACHABLE:
        news = attempt.unreachable_since is None
        attempt.unreachable_since = attempt.unreachable_since or now
        return news
    if attempt.external_ref is None:
        return False  # not submitted, as far as we know: adopted first
    news = attempt.observed != seen.state or attempt.unreachable_since is not None
    attempt.unreachable_since = None
    if attempt.observed != seen.state:
        attempt.observed, attempt.observed_at = str(seen.state), now
    if seen.state in OVER:
        attempt.ended_at = attempt.ended_at or now
        attempt.exit_code = seen.exit_code if attempt.exit_code is None else attempt.exit_code
        attempt.log_tail = attempt.log_tail or seen.log_tail
    if seen.state in ALIVE and attempt.outcome is None:
        attempt.ended_at = None  # the executor has changed its mind
    return news


def apply(
    session: Session,
    run: Run,
    attempt: Attempt | None,
    decision: Decision,
    seen: Observation | None,
    now: datetime,
) -> None:
    """Do what was decided. `run` and `attempt` are locked. Raises Conflict when the run changed all the same."""
    if attempt is not None:
        _mark_attempt(session, run, attempt, decision, seen, now)
    reason = decision.reason
    if decision.to is Status.PAUSED:
        reason = f"{reason} {goes_on_from(session, run)}"
    for status in decision.path:
        evidence = _evidence(attempt, seen) if status == decision.to else {}
        transition(session, run, status, actor=ACTOR, reason=reason, now=now, **evidence)
    if decision.to is None:
        return
    if attempt is not None and decision.to not in HOLDS_PLACE:
        attempt.ended_at = attempt.ended_at or now
        attempt.lease = attempt.lease_expires_at = None
    run.excused_attempts += decision.excused
    if decision.to is Status.PAUSED:
        enqueue(session, ADMIT_TASK)  # its place is free
    if decision.to is Status.QUEUED and decision.retry_in_s is not None:
        run.not_before = now + timedelta(seconds=decision.retry_in_s)
        enqueue(session, ADMIT_TASK, not_before=run.not_before)
    if decision.to in TERMINAL:
        _wind_up(session, run, attempt, decision, now)


def _mark_attempt(
    session: Session, run: Run, attempt: Attempt, decision: Decision, seen: Observation | None, now: datetime
) -> None:
    if decision.adopt and seen is not None:
        reference = reference_of(run.id, attempt.number)
        record_submission(session, attempt.id, Submitted(reference, created=False, token_id=seen.token_id), now)
    if decision.ask_stop and attempt.stop_requested_at is None:
        attempt.stop_requested_at = now
    if decision.force_stop:
        attempt.stop_forced_at = now
        record_of(
            session,
            run,
            "attempt.stop_forced",
            actor=ACTOR,
            reason=decision.reason or run.reason,
            attempt=attempt.number,
        )


def _wind_up(session: Session, run: Run, attempt: Attempt | None, decision: Decision, now: datetime) -> None:
    """A run is over: its last forecast, its place for the next, and a word to people when it failed unasked."""
    settle_ended(session, run, now=now)
    resolve_if_over(session, run, actor=ACTOR, now=now)
    supersede_if_over(session, run, now)
    enqueue(session, REFIT_TASK, run.id)
    enqueue(session, ADMIT_TASK)
    if run.sweep_id is not None:
        ask_for_comparison(session, run.sweep_id, now)  # a run that ended without evaluations has no refit to ask
    if decision.to is Status.FAILED and run.desired_state in UNASKED:
        _say_it_failed(session, run, attempt, now)


def _say_it_failed(session: Session, run: Run, attempt: Attempt | None, now: datetime) -> None:
    where = (
        f"At {compute_text(run.last_compute)} {run.compute_unit}"
        if run.last_compute is not None
        else "Before its first evaluation"
    )
    tries = f" in attempt {run.attempt}" if run.attempt > 1 else ""
    evidence = {
        "attempt": run.attempt,
        "exit_code": attempt.exit_code if attempt else None,
        "log_tail": (attempt.log_tail or "")[-2000:] if attempt else "",
    }
    open_alert(
        session,
        run,
        kind="run_failed",
        level="ALERT",
        title=f"{run.name} failed",
        text=f"{where}{tries}: {brief(run.reason) if run.reason else 'no reason is known'}.",
        now=now,
        at_compute=run.last_compute,
        evidence=evidence,
        actor=ACTOR,
    )


def _evidence(attempt: Attempt | None, seen: Observation | None) -> dict[str, object]:
    """What the decision rested on, for the audit log."""
    found: dict[str, object] = {}
    if seen is not None:
        found |= {"executor": str(seen.state), "executor_reason": seen.reason, "exit_code": seen.exit_code}
    if attempt is not None:
        heard = attempt.last_heartbeat_at
        found |= {"outcome": attempt.outcome, "last_heartbeat_at": heard.isoformat() if heard else None}
    return found
