"""Recording and reading what happened.

A cursor is the number of a transaction, not of an event. Event ids are drawn before commit, so that a reader of
`id > cursor` can skip an event that commits late. Postgres' transaction numbers have a line that none can cross: all
below the oldest one still running (in this database) have ended, and what they wrote is seen. Readers take whole
transactions up to that line, in order; so a cursor, once given out, has nothing left behind it.

After a restore from a logical dump into a new cluster, old rows carry numbers of the old one; see
`forget_numbers_ahead`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, text
from sqlalchemy.orm import Session

from server.pagination import newest_first

from .models import Event


def record(
    session: Session,
    kind: str,
    *,
    actor: str,
    run_id: str | None = None,
    sweep_id: str | None = None,
    from_state: str | None = None,
    to_state: str | None = None,
    reason: str | None = None,
    **evidence: Any,
) -> Event:
    """Append an event in the caller's transaction; `evidence` is kept as JSON."""
    event = Event(
        kind=kind,
        actor=actor,
        run_id=run_id,
        sweep_id=sweep_id,
        from_state=from_state,
        to_state=to_state,
        reason=reason,
        evidence=evidence,
    )
    session.add(event)
    return event


@dataclass(frozen=True)
class EventPage:
    """Events oldest first, and the cursor to read on from."""

    items: list[Event]
    cursor: int


_LINE = text("""
    WITH now AS MATERIALIZED (SELECT pg_current_snapshot() AS snapshot),
    running (transaction) AS (
      SELECT running::text::bigint FROM now, pg_snapshot_xip(now.snapshot) AS running
      UNION ALL
      SELECT pg_current_xact_id_if_assigned()::text::bigint  -- our own, which the snapshot leaves out
    ),
    elsewhere (transaction) AS (  -- numbers are drawn for the whole cluster: other databases must not hold us back
      SELECT backend_xid::text::bigint FROM pg_stat_activity
      WHERE datname <> current_database() AND backend_xid IS NOT NULL
    )
    SELECT coalesce(min(running.transaction), max(pg_snapshot_xmax(now.snapshot)::text::bigint)) - 1
    FROM now LEFT JOIN running ON running.transaction IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM elsewhere WHERE elsewhere.transaction = running.transaction & 4294967295
    )
""")


def current_cursor(session: Session) -> int:
    """The newest transaction of which, and of all before it, everything is seen by a read that follows this one."""
    return int(session.execute(_LINE).scalar_one())


def read_after(
    session: Session, cursor: int, *, run_id: str | None = None, sweep_id: str | None = None, limit: int = 500
) -> EventPage:
    """Events of the transactions after `cursor`, oldest first; more than `limit` where one transaction wrote more."""
    line = current_cursor(session)
    query = select(Event).where(Event.transaction <= line)
    if run_id is not None:
        query = query.where(Event.run_id == run_id)
    if sweep_id is not None:
        query = query.where(Event.sweep_id == sweep_id)
    query = query.order_by(Event.transaction, Event.id)
    items = list(session.scalars(query.where(Event.transaction > cursor).limit(limit)))
    if len(items) < limit:
        return EventPage(items, max(cursor, line))
    last = items[-1]
    items += session.scalars(query.where(Event.transaction == last.transaction, Event.id > last.id))
    return EventPage(items, last.transaction)


_FORGET_AHEAD = text("""
    UPDATE events SET transaction = '1' WHERE transaction >= pg_snapshot_xmax(pg_current_snapshot())
""")


def forget_numbers_ahead(connection: Connection) -> int:
    """Let events be seen that a dump brought from a cluster that had counted further; how many there were.

    What a statement sees was written by transactions before its snapshot's end, so a number beyond is of elsewhere:
    readers would wait for it, and find the event among those of the day on which it is reached. 1 is no transaction's
    (Postgres begins at 3), and after the cursor 0.
    """
    return connection.execute(_FORGET_AHEAD).rowcount


def list_run_events(
    session: Session, run_id: str, *, cursor: str | None, limit: int
) -> tuple[Sequence[Event], str | None]:
    """One page of a run's events, newest first."""
    return newest_first(session, select(Event).where(Event.run_id == run_id), Event.id, cursor, limit)
