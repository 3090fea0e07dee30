"""Comparing the arms of a sweep with its control: claim, read, compare outside any transaction, write down."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import Session, sessionmaker

from server.comparisons.find import RESTS, Compared, Entrant, Found, attempted, find, too_many
from server.database import transaction
from server.events.outbox import enqueue
from server.events.service import record
from server.forecasts.past_runs import past_runs
from server.metrics.curve import validation_curves
from server.runs.models import Run
from server.settings import Settings
from server.sweeps.comparisons import COMPARE_TASK
from server.sweeps.models import SweepComparison
from worker import allocate
from worker.allocate import Shared
from worker.clocks import is_ahead, is_reached, lease_of
from worker.tries import Tries, is_due_again, tries_after, tries_after_death

COMPARED = "comparison"
_UNALLOCATED = "Who trains on could not be said, unexpectedly; the worker's log says why, at {}."
RUSHES = 0.2
"""Rests of a sweep whose runs share one budget are shorter by this: while it rests, runs train further than it says."""
_DIED = "The worker that was comparing ended before it was done, each time, as when memory runs out"


@dataclass(frozen=True)
class Claim:
    """A sweep whose comparison is ours."""

    sweep_id: str
    lease: str
    dirty_at: datetime | None


class Allocated(NamedTuple):
    """What is told of an allocation, and how long it took; nothing where it holds no more."""

    said: dict[str, Any] | None
    seconds: float


def compare_sweep(sessions: sessionmaker[Session], settings: Settings, sweep_id: str, now: datetime) -> None:
    """Compare a sweep that has forecasts its comparison has not seen.

    As with refits, at most one is in flight, what comes meanwhile asks for another, one that dies is taken up again
    when its lease ends, and what failed unexpectedly is tried again a few times, or until it works where runs are held
    for it. Only a changed result is an event, for which open pages refresh.
    """
    with transaction(sessions) as session:
        claim = _claim(session, settings, sweep_id, now)
    if claim is None:
        return
    with transaction(sessions) as session:  # the claim is committed: refits of the sweep do not wait for this
        compared, shared = _read(session, settings, sweep_id)
    found = attempted(find, compared, sweep_id)
    allocated = None
    if shared is not None and not found.unexpected:  # else nothing is known of any run, and all of them would be ended
        allocated = _allocated(sessions, shared, found, now)
        if allocated is None:
            found = replace(found, note=_UNALLOCATED.format(sweep_id), unexpected=True)  # it is tried again
    with transaction(sessions) as session:
        _finish(session, settings, claim, found, allocated, now)


def _allocated(sessions: sessionmaker[Session], shared: Shared, found: Found, now: datetime) -> Allocated | None:
    """Think over who trains on, and have it so."""
    began = time.perf_counter()
    thought = allocate.think(shared, found.fits, found.seed_sd)
    if thought is None:
        return None
    with transaction(sessions) as session:
        holds = allocate.apply(session, shared, thought, now)
    return Allocated(allocate.said(shared, thought, found.fits, now) if holds else None, time.perf_counter() - began)


def has_rested(now: datetime, waited: timedelta = timedelta()) -> ColumnElement[bool]:
    """Whether a comparison may be made anew, for at least `waited`. One that was made in the future was made before a
    clock was set back."""
    row = SweepComparison
    return or_(row.not_before.is_(None), row.not_before <= now - waited, is_ahead(row.compared_at, now))


def _claim(session: Session, settings: Settings, sweep_id: str, now: datetime) -> Claim | None:
    free = or_(SweepComparison.lease.is_(None), is_reached(SweepComparison.lease_expires_at, now, lease_of(settings)))
    wanted = or_(SweepComparison.dirty_at.is_not(None), is_due_again(SweepComparison.again_at, now))
    mine = select(SweepComparison).where(SweepComparison.sweep_id == sweep_id, wanted, has_rested(now), free)
    row = session.scalar(mine.with_for_update().execution_options(populate_existing=True))
    if row is None or (row.lease is not None and not _survives(session, row, now)):
        return None
    row.lease, row.lease_expires_at = secrets.token_hex(8), now + lease_of(settings)
    return Claim(sweep_id, row.lease, row.dirty_at)


def _survives(session: Session, row: SweepComparison, now: datetime) -> bool:
    """Whether a sweep is to be compared at once though the last time ended with the worker, without a word."""
    tries = tries_after_death(row.tries, now, waited_for=allocate.is_waited_for(session, row.sweep_id))
    if tries.again_at == now:
        row.tries = tries.number
        return True
    row.lease = row.lease_expires_at = row.dirty_at = None
    _note_tries(session, row, tries)
    if row.note != tries.said(_DIED):
        row.note = tries.said(_DIED)
        record(session, COMPARED, actor="compare", sweep_id=row.sweep_id, reason=row.note)
    return False


def _read(session: Session, settings: Settings, sweep_id: str) -> tuple[Compared, Shared | None]:
    runs = session.scalars(select(Run).where(Run.sweep_id == sweep_id).order_by(Run.id)).all()
    control = next((run for run in runs if run.is_control), None)
    curves = {} if too_many(len(runs)) else validation_curves(session, [run.id for run in runs])
    past = past_runs(session, control, of_its_sweep=False) if curves and control is not None else []
    unit = runs[0].compute_unit  # of all, by the plan of the sweep
    budget = max((run.budget_compute for run in runs if run.budget_compute is not None), default=None)
    ours = [Entrant.of(run, _arm(run), curves.get(run.id, [])) for run in runs]
    compared = Compared(None if control is None else _arm(control), unit, budget, ours, past)
    return compared, allocate.read_shared(session, settings, sweep_id, runs, ours)


def _arm(run: Run) -> str:
    return run.arm or run.name


def _finish(
    session: Session, settings: Settings, claim: Claim, found: Found, allocated: Allocated | None, now: datetime
) -> None:
    row = session.get_one(SweepComparison, claim.sweep_id, with_for_update=True, populate_existing=True)
    if row.lease != claim.lease:
        return  # the lease ran out and another worker has taken over
    row.lease = row.lease_expires_at = None
    took = found.seconds if allocated is None else RUSHES * (found.seconds + allocated.seconds)
    row.not_before = now + timedelta(seconds=max(settings.refit_every_s, RESTS * took))
    if row.dirty_at == claim.dirty_at:
        row.dirty_at = None
    else:  # more has come: stay dirty
        enqueue(session, COMPARE_TASK, claim.sweep_id, not_before=row.not_before)
    note = _note(session, row, found, now, anew=claim.dirty_at is not None)
    said = row.allocation if allocated is None or allocated.said is None else allocated.said
    news = (row.result, row.note) != (found.result, note) or _without_time(row.allocation) != _without_time(said)
    row.compared_at, row.seconds, row.result, row.note = now, found.seconds, found.result, note
    row.allocation = said
    if news:
        reason = note if found.result is None or note is not None else found.result["sentence"]
        record(session, COMPARED, actor="compare", sweep_id=claim.sweep_id, reason=reason)


def _without_time(said: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (said or {}).items() if name != "planned_at"}


def _note(session: Session, row: SweepComparison, found: Found, now: datetime, *, anew: bool) -> str | None:
    """Why there is no comparison, if so, and when it is tried again. `anew`: of forecasts that none had seen."""
    waited_for = found.unexpected and allocate.is_waited_for(session, row.sweep_id)
    tries = tries_after(row.tries, now, failed=found.unexpected, anew=anew, waited_for=waited_for)
    _note_tries(session, row, tries)
    return tries.said(found.note) if found.unexpected and found.note is not None else found.note


def _note_tries(session: Session, row: SweepComparison, tries: Tries) -> None:
    row.tries, row.again_at = tries.number, tries.again_at
    if tries.again_at is not None:
        enqueue(session, COMPARE_TASK, row.sweep_id, not_before=tries.again_at)
