"""The outbox: work for the broker, written in the transaction that makes it necessary."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from .models import OutboxMessage


def enqueue(session: Session, task: str, *args: Any, not_before: datetime | None = None) -> None:
    """Ask for Celery task `task` (its registered name) with JSON arguments, once this transaction commits."""
    message = OutboxMessage(task=task, args=list(args))
    if not_before is not None:
        message.not_before = not_before
    session.add(message)
