"""Reading what jobs print from the cluster into the store, where it outlives the cluster.

A log that somebody looks at is read every two seconds, any other of a live job every five minutes, and each once more
when its job is over. Ray gives a log whole or not at all; one that takes long is read more seldom, a twentieth of the
time at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic

from sqlalchemy import ColumnElement, Select, and_, func, or_, select
from sqlalchemy.orm import Session

from server.database import transaction
from server.logs.models import AttemptLog
from server.logs.service import WATCHED, keep, note_read
from server.runs.models import Attempt, Run
from server.runs.states import HOLDS_PLACE
from worker.clocks import is_ahead, is_past
from worker.context import Context
from worker.executors.base import ALIVE, OVER, Away, reference_of

UNWATCHED = timedelta(minutes=5)
AGAIN = timedelta(seconds=30)
"""Between two tries to read the log of a job that is over."""
TRIED_FOR = timedelta(days=1)
"""How long that is tried: a cluster that is out of reach may come back."""
_SETTLES = timedelta(seconds=60)
"""A job of which the cluster says nothing may print for so long after its attempt ended."""
_ALIVE, _OVER = ([str(state) for state in states] for states in (ALIVE, OVER))
_RESTS = 20
"""Times what a read took until the next."""
_AWAY_S = 0.5
"""As long a read counts as which found the cluster away: the next is that many times `_RESTS` later."""
_AT_ONCE = 200
_PASS_S = 10.0
"""A pass begins no further read after so long: the tick has other work."""


@dataclass(frozen=True)
class Due:
    """A log to read; `over`: its job prints nothing more."""

    attempt_id: str
    reference: str
    over: bool


def read_logs(context: Context, now: datetime) -> int:
    """One pass over the logs that are due; the number that was read.

    A log that cannot be had holds up no other. Where the cluster is away the pass ends, and all that are due rest: one
    try after another would keep this process from its other work for as long.
    """
    began = monotonic()
    with transaction(context.sessions) as session:
        due = find_due(session, now)
    read = 0
    for at, one in enumerate(due):
        if monotonic() - began > _PASS_S:
            break
        try:
            read += _read(context, one)
        except Away:
            with transaction(context.sessions) as session:
                note_read(session, [other.attempt_id for other in due[at:]], context.clock(), _AWAY_S)
            break
    return read


def find_due(session: Session, now: datetime) -> list[Due]:
    """Those that somebody looks at first, then those of jobs that are over, then the one read longest ago."""
    watched = [Due(*row, over=False) for row in _rows(session, _live().where(_is_watched(now), _has_rested(now)))]
    ended = [Due(*row, over=True) for row in _rows(session, _ended(now))]
    others = _live().where(
        ~_is_watched(now), or_(AttemptLog.read_at.is_(None), is_past(AttemptLog.read_at, now, UNWATCHED))
    )
    return [*watched, *ended, *(Due(*row, over=False) for row in _rows(session, others))][:_AT_ONCE]


def _rows(session: Session, query: Select[str, str, int]) -> list[tuple[str, str]]:
    oldest = query.order_by(AttemptLog.read_at.nulls_first(), Attempt.id).limit(_AT_ONCE)
    return [(attempt_id, reference_of(run_id, number)) for attempt_id, run_id, number in session.execute(oldest)]


def _attempts() -> Select[str, str, int]:
    """Attempts whose jobs were submitted here, each with what is known of its log."""
    query = select(Attempt.id, Attempt.run_id, Attempt.number).join(Run, Run.id == Attempt.run_id)
    query = query.outerjoin(AttemptLog, AttemptLog.attempt_id == Attempt.id)
    return query.where(Run.executor != "external", Attempt.external_ref.is_not(None))


def _live() -> Select[str, str, int]:
    prints = or_(Attempt.observed.is_(None), Attempt.observed.not_in(_OVER))
    return _attempts().where(Run.status.in_(HOLDS_PLACE), Attempt.number == Run.attempt, prints)


def _ended(now: datetime) -> Select[str, str, int]:
    """Of attempts that are over, and whose logs were not read since their jobs were seen to be."""
    lately = func.coalesce(Attempt.ended_at, Attempt.created_at) > now - TRIED_FOR
    silent = or_(Attempt.observed.is_(None), Attempt.observed.not_in(_ALIVE)), Attempt.ended_at < now - _SETTLES
    prints_no_more = or_(Attempt.observed.in_(_OVER), and_(*silent))
    to_read = or_(
        AttemptLog.read_at.is_(None), AttemptLog.read_at <= Attempt.observed_at, is_past(AttemptLog.read_at, now, AGAIN)
    )
    not_whole = or_(AttemptLog.whole.is_(None), AttemptLog.whole.is_(False))
    return _attempts().where(Attempt.ended_at.is_not(None), lately, prints_no_more, not_whole, to_read)


def _is_watched(now: datetime) -> ColumnElement[bool]:
    asked = and_(AttemptLog.asked_at > now - WATCHED, ~is_ahead(AttemptLog.asked_at, now))
    return func.coalesce(asked, False)


def _has_rested(now: datetime) -> ColumnElement[bool]:
    """Whether its last read is long enough ago, as measured by how long that took."""
    seconds = func.make_interval(0, 0, 0, 0, 0, 0, _RESTS * AttemptLog.took_s)
    read_at = AttemptLog.read_at
    return or_(read_at.is_(None), read_at + seconds <= now, is_ahead(read_at, now))


def _read(context: Context, due: Due) -> bool:
    """Whether this log could be had.

    Raises:
        Away: the cluster does not answer.
    """
    began = monotonic()
    log = context.executor.log(due.reference)
    took_s = monotonic() - began
    with transaction(context.sessions) as session:
        note_read(session, [due.attempt_id], context.clock(), took_s)
        if log is not None:
            keep(session, due.attempt_id, log.ended if due.over else log, whole=due.over)
    return log is not None
