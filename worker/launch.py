"""Submitting an attempt to the executor, once.

    transaction 1   claim the attempt's lease (nobody else holds it, nothing was submitted, the run is still wanted)
                    and mint an ingest token for this try
    no transaction  submit under the key `{run}-a{attempt}`; whatever goes wrong, look whether the job is there
    transaction 2   record the reference, guarded by the lease, and revoke the tokens that the job does not hold

A worker that dies in between leaves a lease that runs out and perhaps a job: the next try finds and adopts it, and so
does the reconciler. A second delivery of the task finds the lease taken, or nothing left to do.
"""

from __future__ import annotations

import secrets
import shlex
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePath

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from server.access.models import Token
from server.access.service import mint
from server.checkpoints.models import Checkpoint
from server.database import transaction
from server.events.outbox import enqueue
from server.runs.history import record_of
from server.runs.models import Attempt, Run
from server.runs.service import RECONCILE_TASK, lock_run
from server.runs.states import DesiredState, Status
from server.settings import Settings
from worker.admit import LAUNCH_TASK
from worker.clocks import is_reached, lease_of
from worker.context import Context
from worker.decide import REJECTED
from worker.executors.base import JobSpec, State, SubmitError, Submitted, reference_of
from worker.executors.ray_jobs import TOKEN_ID

ACTOR = "launcher"
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 30.0


@dataclass(frozen=True)
class Claim:
    """A claimed attempt with everything that its submission needs."""

    attempt_id: str
    run_id: str
    lease: str
    job: JobSpec


def longest_claim(settings: Settings) -> timedelta:
    """How long nobody else submits an attempt: while somebody does, or until the next try."""
    return max(lease_of(settings), timedelta(seconds=LONGEST_WAIT_S))


def launch(context: Context, attempt_id: str, now: datetime) -> None:
    """Submit the attempt if that is still to be done. Safe to call any number of times, at once too."""
    with transaction(context.sessions) as session:
        claim = _claim(session, context.settings, attempt_id, now)
    if claim is None:
        return
    try:
        submitted = context.executor.submit(claim.job)
    except SubmitError as error:
        with transaction(context.sessions) as session:
            _put_off(session, claim, error, now)
        return
    with transaction(context.sessions) as session:
        lock_run(session, claim.run_id)
        if _still_ours(session, claim):
            record_submission(session, claim.attempt_id, submitted, now)
        else:
            _note_late(session, claim)


def record_submission(session: Session, attempt_id: str, submitted: Submitted, now: datetime) -> None:
    """Keep the executor's reference, and revoke the ingest tokens that the job does not hold (if it is known).

    The run is locked.
    """
    attempt = session.get_one(Attempt, attempt_id)
    attempt.external_ref = submitted.reference
    attempt.submitted_at = attempt.started_at or now  # what has reported was submitted before
    attempt.observed, attempt.observed_at = "pending", now
    attempt.lease = attempt.lease_expires_at = None
    run = session.get_one(Run, attempt.run_id)
    if run.status == Status.LAUNCHING:
        run.reason = None  # why it had not been submitted yet
    if submitted.token_id is not None:
        unheld = Token.run_id == run.id, Token.attempt == attempt.number, Token.id != submitted.token_id
        session.execute(update(Token).where(*unheld, Token.revoked_at.is_(None)).values(revoked_at=now))
    record_of(
        session,
        run,
        "attempt.submitted",
        actor=ACTOR,
        attempt=attempt.number,
        reference=submitted.reference,
        adopted=not submitted.created,
    )
    if run.desired_state != DesiredState.RUN:
        enqueue(session, RECONCILE_TASK, run.id)  # it was told to stop while it was being submitted


def _claim(session: Session, settings: Settings, attempt_id: str, now: datetime) -> Claim | None:
    run_id = session.scalar(select(Attempt.run_id).where(Attempt.id == attempt_id))
    if run_id is None:
        return None
    run = lock_run(session, run_id)
    if run.status != Status.LAUNCHING or run.desired_state != DesiredState.RUN:
        return None
    lease = secrets.token_hex(8)
    free = is_reached(Attempt.lease_expires_at, now, longest_claim(settings))
    mine = Attempt.id == attempt_id, Attempt.number == run.attempt, Attempt.external_ref.is_(None), free
    claim = update(Attempt).where(*mine).values(lease=lease, lease_expires_at=now + lease_of(settings))
    attempt = session.scalar(claim.returning(Attempt))
    if attempt is None or attempt.observed == REJECTED:
        return None
    return Claim(attempt.id, run.id, lease, _job(session, settings, run, attempt, now))


def _job(session: Session, settings: Settings, run: Run, attempt: Attempt, now: datetime) -> JobSpec:
    # A fresh token for every try: its secret is kept nowhere, so an earlier try's cannot be sent again.
    name = f"ingest {run.name} attempt {attempt.number}"
    token, secret = mint(
        session, kind="ingest", name=name, scopes=["ingest"], now=now, run_id=run.id, attempt=attempt.number
    )
    environment = {
        "FORECURVE_URL": settings.trainer_url or settings.public_url,
        "FORECURVE_RUN": run.id,
        "FORECURVE_ATTEMPT": str(attempt.number),
        "FORECURVE_TOKEN": secret,
        "FORECURVE_OUT": str(_runs_dir(settings) / run.id),
    }
    if settings.trainer_path:
        environment["PYTHONPATH"] = settings.trainer_path
    metadata = {"run": run.id, "attempt": str(attempt.number), "name": run.name, TOKEN_ID: token.id}
    return JobSpec(reference_of(run.id, attempt.number), _command(session, settings, run), environment, metadata)


def _runs_dir(settings: Settings) -> PurePath:
    """On the machine that trainers run on, which need not be this one."""
    return PurePath(settings.trainer_dir) if settings.trainer_dir else settings.data_dir.resolve() / "runs"


def _command(session: Session, settings: Settings, run: Run) -> str:
    """The job's line of shell. A fork names its parent's checkpoint in every attempt: the first may not have come to
    one of its own."""
    command = f"{settings.trainer_command} --run"
    if run.parent_checkpoint_id is None:
        return command
    begin = session.get_one(Checkpoint, run.parent_checkpoint_id)
    return f"{command} {shlex.join([f'--fork={begin.path}', f'--digest={begin.digest}'])}"


def _still_ours(session: Session, claim: Claim) -> bool:
    """Whether the lease is still ours; locks the attempt. Whoever took it over adopts the job."""
    mine = Attempt.id == claim.attempt_id, Attempt.lease == claim.lease, Attempt.external_ref.is_(None)
    return session.scalar(select(Attempt.id).where(*mine).with_for_update()) is not None


def _note_late(session: Session, claim: Claim) -> None:
    """The lease ran out during the submission. Where the attempt was given up meanwhile, and its job was not there yet
    to be stopped, it is to be looked for again."""
    unknown = Attempt.id == claim.attempt_id, Attempt.observed == State.GONE
    session.execute(update(Attempt).where(*unknown).values(observed=None))


def _put_off(session: Session, claim: Claim, error: SubmitError, now: datetime) -> None:
    """Try again later, or let the reconciler fail the run when the executor refused the job for good."""
    run = lock_run(session, claim.run_id)
    if run.status != Status.LAUNCHING or not _still_ours(session, claim):
        return  # its trainer reports, or somebody else has it
    attempt = session.get_one(Attempt, claim.attempt_id)
    again_at = now + timedelta(seconds=wait_s((now - attempt.created_at).total_seconds()))
    attempt.lease = None
    attempt.lease_expires_at = again_at  # nobody claims it before
    run.reason = f"Not submitted yet: {error.reason}"
    if error.retryable:
        enqueue(session, LAUNCH_TASK, attempt.id, not_before=again_at)
        return
    attempt.observed, attempt.observed_at, attempt.log_tail = REJECTED, now, error.reason
    record_of(session, run, "attempt.rejected", actor=ACTOR, reason=error.reason, attempt=attempt.number)
    enqueue(session, RECONCILE_TASK, run.id)


def wait_s(age_s: float) -> float:
    """Seconds to the next try: half the attempt's age, so waits grow by half each time, from 1 to 30 s."""
    return min(max(age_s / 2, FIRST_WAIT_S), LONGEST_WAIT_S)
