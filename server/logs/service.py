"""Logs of attempts: the worker reads them from the cluster, and people read them here.

A log that somebody looks at is read every few seconds, any other every few minutes and when its job is over: who looks
is noted (`asked_at`), and the worker goes by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from sqlalchemy import or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from server.errors import NotFound
from server.runs.models import Attempt, Run
from server.runs.service import get_run
from server.runs.states import TERMINAL, Status

from .models import AttemptLog
from .schemas import LogRead

WATCHED = timedelta(seconds=30)
"""How long a log counts as looked at after somebody asked for it."""

_NOTED_EVERY = timedelta(seconds=5)
_GIVEN_UP = timedelta(minutes=2)
"""After its attempt ended, a log that could not be read since is taken to be whole: the cluster may be gone."""


class Lines(Protocol):
    """What is known of a job's output: lines, how many came before them, and what came after the last."""

    @property
    def first(self) -> int: ...
    @property
    def lines(self) -> Sequence[str]: ...
    @property
    def unfinished(self) -> str: ...


def read_log(
    session: Session, run_id: str, number: int | None, *, after: int | None, limit: int, now: datetime
) -> LogRead:
    """Lines of the log of one attempt, by default the newest: the last ones, or those from number `after` on.

    Raises:
        NotFound: no such run or attempt, or one whose job runs where nobody here can read what it prints.
    """
    run = get_run(session, run_id)
    if run.executor == "external":
        told = "the run was not launched here, so that nobody here reads what it prints; look where it was started"
        raise NotFound.field("run_id", run_id, told)
    attempt = _attempt(session, run, number)
    log = (session.get(AttemptLog, attempt.id) if attempt else None) or _nothing()
    whole = log.whole or (Status(run.status) in TERMINAL if attempt is None else _is_given_up(attempt, now))
    if attempt is not None and not log.whole:
        _note_asked(session, attempt.id, now)
    end = log.first + log.count
    first = min(max(log.first, end - limit if after is None else after), end)
    lines = log.text.split("\n")[first - log.first :][:limit] if first < end else []
    return LogRead(
        run_id=run.id,
        attempt=attempt.number if attempt else 0,
        attempts=run.attempt,
        first=first,
        lines=lines,
        unfinished=log.unfinished if first + len(lines) == end else "",
        next=first + len(lines),
        kept=log.first,
        whole=whole,
        read_at=log.read_at,
    )


def keep(session: Session, attempt_id: str, log: Lines, *, whole: bool) -> None:
    """Put what was read in place of what was known. Less than that is no news: the cluster may have begun anew."""
    row = session.get_one(AttemptLog, attempt_id, with_for_update=True)
    known, found = row.first + row.count, log.first + len(log.lines)
    if found > known:
        row.first, row.count, row.text = log.first, len(log.lines), "\n".join(log.lines)
    if found >= known:
        row.unfinished = "" if whole else log.unfinished
    row.whole = whole


def note_read(session: Session, attempt_ids: Iterable[str], now: datetime, took_s: float) -> None:
    """That the cluster was asked for these logs, whether or not it answered."""
    values = {"read_at": now, "took_s": took_s}
    rows = insert(AttemptLog).values([{"attempt_id": one, **values} for one in sorted(attempt_ids)])
    session.execute(rows.on_conflict_do_update(index_elements=["attempt_id"], set_=values))


def _attempt(session: Session, run: Run, number: int | None) -> Attempt | None:
    """None where the run was never launched and no attempt is asked for."""
    wanted = run.attempt if number is None else number
    found = session.scalar(select(Attempt).where(Attempt.run_id == run.id, Attempt.number == wanted))
    if found is None and number is not None:
        launched = f"was launched {run.attempt} times" if run.attempt > 1 else "was launched once"
        raise NotFound.field("attempt", number, f"the run {launched if run.attempt else 'was not launched yet'}")
    return found


def _nothing() -> AttemptLog:
    return AttemptLog(first=0, count=0, text="", unfinished="", whole=False)


def _is_given_up(attempt: Attempt, now: datetime) -> bool:
    return attempt.ended_at is not None and attempt.ended_at < now - _GIVEN_UP


def _note_asked(session: Session, attempt_id: str, now: datetime) -> None:
    mine = insert(AttemptLog).values(attempt_id=attempt_id, asked_at=now)
    stale = or_(AttemptLog.asked_at.is_(None), AttemptLog.asked_at < now - _NOTED_EVERY, AttemptLog.asked_at > now)
    session.execute(
        mine.on_conflict_do_update(index_elements=["attempt_id"], set_={"asked_at": now}, where=stale),
    )
