"""Comparing what is wanted of every run with what is the case, and acting on it. Only here do runs become terminal.

    transaction     read the active runs and their attempts
    no transaction  one look at the executor for all of them; a look at our own API
    per run         decide on what was read; when there is something to do: a transaction that reads the run again under
                    a lock, decides again, and applies; after it, the executor's stop

Two reconcilers at once do no harm: the second finds another state under the lock and decides on that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from celery.exceptions import SoftTimeLimitExceeded
from sqlalchemy import and_, func, or_, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from server.database import transaction
from server.errors import Conflict, NotFound
from server.runs.fencing import WAITING
from server.runs.models import Attempt, Run
from server.runs.service import lock_run
from server.runs.states import HOLDS_PLACE, TERMINAL, DesiredState, Status
from server.runs.ticks import healthy_since, tick
from server.settings import Settings
from worker.apply import apply, note
from worker.case import WAIT, Decision
from worker.context import Context
from worker.decide import decide
from worker.executors.base import ALIVE, OVER, Away, Observation, State, reference_of

log = logging.getLogger(__name__)

NAME = "reconcile"
_LOG_S = 5.0
"""Seconds that the log of a run which ends badly may take: others wait for the pass."""
ORPHANS_FOR = timedelta(days=14)
"""How long jobs of attempts are looked after from when they were given up: longer than a cluster is out of reach. What
their trainers report then is refused (401: their tokens ran out), so that nobody else tells them to stop."""


@dataclass(frozen=True)
class Pair:
    """A run and its current attempt, as read before the look at the executor."""

    run: Run
    attempt: Attempt | None

    @property
    def reference(self) -> str | None:
        """The executor's name of it, whether or not the submission was recorded: a job may exist all the same."""
        if self.attempt is None or self.run.executor == "external" or Status(self.run.status) not in HOLDS_PLACE:
            return None
        return reference_of(self.run.id, self.attempt.number)


@dataclass(frozen=True)
class Orphan:
    """A given-up attempt whose job may still live."""

    attempt_id: str
    reference: str
    ended_at: datetime


def reconcile(context: Context, now: datetime) -> int:
    """One pass over every run that is not over; the number of runs that were changed."""
    reachable = context.reachable()
    with transaction(context.sessions) as session:
        pairs = _active(session)
        orphans = _orphans(session, now)
        # while trainers cannot reach us, no silence counts
        well_since = tick(session, NAME, now, gap=_gap(context.settings)) if reachable else now
    references = [pair.reference for pair in pairs if pair.reference] + [orphan.reference for orphan in orphans]
    seen = context.executor.observe(references)
    changed = 0
    for pair in pairs:
        with _apart(f"run {pair.run.id}"):
            changed += _reconcile_one(context, pair, seen, now, well_since)
    for orphan in orphans:
        with _apart(f"job {orphan.reference}"):
            _end_orphan(context, orphan, seen[orphan.reference], now)
    return changed


@contextmanager
def _apart(what: str) -> Iterator[None]:
    """What nobody foresaw of one of them must not keep the others from being looked after."""
    try:
        yield
    except (OperationalError, SoftTimeLimitExceeded):  # the database or the time is gone for all
        raise
    except Exception:
        log.exception("%s: cannot be looked after; the others are", what)


def reconcile_run(context: Context, run_id: str, now: datetime) -> bool:
    """The same for one run, at once: it was told to stop, or its trainer reported how it ended."""
    with transaction(context.sessions) as session:
        pairs = _active(session, run_id)
        well_since = healthy_since(session, NAME, now, gap=_gap(context.settings))
    if not pairs:
        return False
    (pair,) = pairs
    seen = context.executor.observe([pair.reference] if pair.reference else [])
    return _reconcile_one(context, pair, seen, now, well_since)


def _reconcile_one(
    context: Context, pair: Pair, observations: Mapping[str, Observation], now: datetime, well_since: datetime
) -> bool:
    seen = observations.get(pair.reference) if pair.reference else None
    noted = note(pair.attempt, seen, now)
    decision = decide(pair.run, pair.attempt, seen, now, context.settings, well_since)
    if decision == WAIT and not noted:
        return False
    log_tail = _fetch_log(context, pair, decision, seen)
    try:
        with transaction(context.sessions) as session:
            decision = _decide_again(session, context, pair, seen, log_tail, now, well_since)
    except (Conflict, NotFound) as lost:
        log.info("run %s: another process was first: %s", pair.run.id, lost)
        return False
    if decision.force_stop and pair.reference:
        context.executor.stop(pair.reference)  # when this gets lost, the next passes see the job alive and repeat it
    return decision != WAIT


def _decide_again(
    session: Session,
    context: Context,
    before: Pair,
    seen: Observation | None,
    log_tail: str | None,
    began: datetime,
    well_since: datetime,
) -> Decision:
    """Decide on the run as it is under the lock, and apply.

    The time is read again too: beside the beginning of a pass that took long, what a trainer said since would look as
    if it were of before a clock was set back.
    """
    run = lock_run(session, before.run.id)
    attempt = _lock_current(session, run)
    now = max(began, context.clock())
    if not _is_same_job(before, attempt):
        return WAIT  # what was seen was another attempt, or was seen before the job was submitted
    note(attempt, seen, now)
    if attempt is not None and log_tail and not attempt.log_tail:
        attempt.log_tail = log_tail
    decision = decide(run, attempt, seen, now, context.settings, well_since)
    apply(session, run, attempt, decision, seen, now)
    return decision


def _is_same_job(before: Pair, attempt: Attempt | None) -> bool:
    if before.attempt is None or attempt is None:
        return before.attempt is attempt
    return before.attempt.id == attempt.id and before.attempt.external_ref == attempt.external_ref


def _fetch_log(context: Context, pair: Pair, decision: Decision, seen: Observation | None) -> str | None:
    """The end of the job's output, when it ends badly and the executor did not send it along."""
    ends_badly = decision.to in (Status.FAILED, Status.QUEUED)
    if not ends_badly or not pair.reference or pair.attempt is None or pair.attempt.log_tail:
        return None
    if seen is None or seen.state in (State.GONE, State.UNREACHABLE):
        return None
    try:
        found = context.executor.log(pair.reference, _LOG_S)
    except Away:
        return None
    return (found.tail() or None) if found else None


def _active(session: Session, run_id: str | None = None) -> list[Pair]:
    """Runs that something may have to be done about: those on the cluster, and waiting ones that are to end."""
    current = and_(Attempt.run_id == Run.id, Attempt.number == Run.attempt)
    to_end = Run.desired_state.in_([DesiredState.STOP, DesiredState.CANCEL])
    stirs = Run.status.in_([*HOLDS_PLACE, Status.LOST, Status.PREEMPTED])
    query = select(Run, Attempt).outerjoin(Attempt, current).where(Run.status.not_in(TERMINAL))
    query = query.where(or_(stirs, to_end, Run.executor == "external")).order_by(Run.id)
    if run_id is not None:
        query = query.where(Run.id == run_id)
    return [Pair(run, attempt) for run, attempt in session.execute(query)]


def _lock_current(session: Session, run: Run) -> Attempt | None:
    mine = select(Attempt).where(Attempt.run_id == run.id, Attempt.number == run.attempt).with_for_update()
    return session.scalar(mine.execution_options(populate_existing=True))


def _orphans(session: Session, now: datetime) -> list[Orphan]:
    given_up = or_(
        Run.status.in_(TERMINAL),
        Run.attempt > Attempt.number,
        Run.status.in_(WAITING),
    )
    unsettled = or_(Attempt.observed.is_(None), Attempt.observed.in_([str(state) for state in ALIVE]))
    last_at = func.coalesce(Attempt.ended_at, Attempt.created_at)
    query = select(Attempt.id, Attempt.run_id, Attempt.number, last_at).join(Run, Run.id == Attempt.run_id)
    query = query.where(Run.executor != "external", given_up, unsettled, last_at > now - ORPHANS_FOR)
    rows = session.execute(query.order_by(Attempt.id))
    return [Orphan(id_, reference_of(run_id, number), ended_at) for id_, run_id, number, ended_at in rows]


def _end_orphan(context: Context, orphan: Orphan, seen: Observation, now: datetime) -> None:
    """Stop the job of an attempt that was given up, e.g. because the executor was unreachable: two would train one.

    "No such job" is not the end of it at once: a submission whose answer was lost may still be on its way.
    """
    late_s = context.settings.launch_deadline_s
    if seen.state in ALIVE:
        log.warning("job %s outlived its attempt; stopping it", orphan.reference)
        context.executor.stop(orphan.reference)
    elif seen.state in OVER and (seen.state is not State.GONE or now > orphan.ended_at + timedelta(seconds=late_s)):
        with transaction(context.sessions) as session:
            attempt = session.get_one(Attempt, orphan.attempt_id)
            attempt.observed, attempt.observed_at = str(seen.state), now


def _gap(settings: Settings) -> timedelta:
    """A pause between two passes that counts as our own outage."""
    return timedelta(seconds=max(15.0, 5 * settings.tick_s))
