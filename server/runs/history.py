"""Events of a run, by the one rule that they are its sweep's too: the page and the stream of a sweep go by them."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from server.events.models import Event
from server.events.service import record

from .models import Run


def record_of(session: Session, run: Run, kind: str, /, *, actor: str, **what: Any) -> Event:
    """Append an event of `run` in the caller's transaction; `what` as `record` takes it: states, reason, evidence."""
    return record(session, kind, actor=actor, run_id=run.id, sweep_id=run.sweep_id, **what)
