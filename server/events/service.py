"""Recording and reading what happened."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select, text
from sqlalchemy.orm import Session

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


def read_after(
    session: Session, cursor: int, *, run_id: str | None = None, sweep_id: str | None = None, limit: int = 500
) -> list[Event]:
    """Events with an id above `cursor`, oldest first, that no running transaction can still precede."""
    settled = text("events.transaction < pg_snapshot_xmin(pg_current_snapshot())")
    query = select(Event).where(Event.id > cursor, settled).order_by(Event.id).limit(limit)
    if run_id is not None:
        query = query.where(Event.run_id == run_id)
    if sweep_id is not None:
        query = query.where(Event.sweep_id == sweep_id)
    return list(session.scalars(query))
