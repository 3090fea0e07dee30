"""From the outbox to the broker: claim what is due, publish it, mark it published.

    transaction 1   claim: rows due are put off by CLAIM_S, so that no other dispatcher takes them (SKIP LOCKED)
    no transaction  publish each
    transaction 2   mark those published; what the broker did not take is due again after RETRY_S

A dispatcher that dies in between leaves rows that are due again after CLAIM_S: a task may be published twice, never
not at all. Tasks are idempotent.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, or_, select, update

from server.database import transaction
from server.events.models import OutboxMessage
from worker.clocks import is_ahead
from worker.context import BrokerDown, Context

log = logging.getLogger(__name__)

CLAIM_S = 20.0
RETRY_S = 2.0
BATCH = 200


@dataclass(frozen=True)
class Message:
    id: int
    task: str
    args: tuple[Any, ...]


def dispatch(context: Context, now: datetime) -> int:
    """Publish everything due; the number of messages published."""
    published = 0
    while True:
        claimed = _claim(context, now)
        sent = _publish(context, claimed)
        _settle(context, claimed, sent, now)
        published += len(sent)
        if len(sent) < BATCH:
            return published


def _claim(context: Context, now: datetime) -> list[Message]:
    due = (
        select(OutboxMessage.id)
        .where(OutboxMessage.published_at.is_(None), or_(OutboxMessage.not_before <= now, _is_of_the_future(now)))
        .order_by(OutboxMessage.not_before, OutboxMessage.id)
        .limit(BATCH)
        .with_for_update(skip_locked=True)
        .cte("due")  # a plain subquery might be run again for every row, and claim more than the limit
    )
    claim = update(OutboxMessage).where(OutboxMessage.id.in_(select(due.c.id)))
    claim = claim.values(not_before=now + timedelta(seconds=CLAIM_S))
    with transaction(context.sessions) as session:
        rows = session.execute(
            claim.returning(OutboxMessage.id, OutboxMessage.task, OutboxMessage.args),
            execution_options={"synchronize_session": False},
        ).all()
    return sorted((Message(row.id, row.task, tuple(row.args)) for row in rows), key=lambda message: message.id)


def _is_of_the_future(now: datetime) -> ColumnElement[bool]:
    """Written, and not claimed since, before a clock was set back. Tasks that come early find nothing to do yet."""
    claimed = timedelta(seconds=CLAIM_S)
    return and_(is_ahead(OutboxMessage.not_before, now, claimed), is_ahead(OutboxMessage.created_at, now, claimed))


def _publish(context: Context, messages: list[Message]) -> list[Message]:
    """Those that the broker took. After one failure the rest is not tried: each try costs a timeout."""
    for done, message in enumerate(messages):
        try:
            context.ring(message.task, *message.args)
        except BrokerDown as down:
            log.warning("%d messages stay in the outbox: %s", len(messages) - done, down)
            return messages[:done]
    return messages


def _settle(context: Context, claimed: list[Message], sent: list[Message], now: datetime) -> None:
    if not claimed:
        return
    sent_ids = [message.id for message in sent]
    unsent_ids = [message.id for message in claimed[len(sent) :]]
    with transaction(context.sessions) as session:
        done = update(OutboxMessage).where(OutboxMessage.id.in_(sent_ids)).values(published_at=now)
        session.execute(done, execution_options={"synchronize_session": False})
        if unsent_ids:
            again = update(OutboxMessage).where(OutboxMessage.id.in_(unsent_ids))
            again = again.values(not_before=now + timedelta(seconds=RETRY_S))
            session.execute(again, execution_options={"synchronize_session": False})
