"""Finding what is due without the broker, and putting away what is old.

A ring that was lost (Redis emptied, a worker killed before it acknowledged) is heard again here. Rings go straight to
the broker and expire soon, so they never pile up; tasks that find nothing to do return at once.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from server.access.models import IdempotencyKey, Token
from server.alerts.models import TEST, Delivery
from server.alerts.telling import DELIVER_TASK
from server.database import transaction
from server.events.models import OutboxMessage
from server.metrics.dirty import REFIT_TASK
from server.runs.lifecycle import INGEST_GRACE
from server.runs.models import Attempt, Run
from server.runs.states import DesiredState, Status
from server.settings import Settings
from server.sweeps.comparisons import COMPARE_TASK
from server.sweeps.models import SweepComparison
from worker import compare, launch, notify, refit
from worker.admit import LAUNCH_TASK
from worker.clocks import is_past, is_reached, lease_of
from worker.context import BrokerDown, Context
from worker.schedule import expires_s, sweep_every_s
from worker.tries import is_due_again

log = logging.getLogger(__name__)

PATIENCE = timedelta(seconds=5)
"""What has been due for less is left to the ring that is under way."""

LONG = timedelta(seconds=30)
"""A run that goes on reporting, whose forecast is older, is rung whenever its last evaluation came."""

KEPT = timedelta(days=1)
"""How long published outbox rows and old test messages are kept."""

KEYS_KEPT = timedelta(days=30)
"""How long idempotency keys are: a run recorded offline whose answer was lost may be handed in again weeks later."""

DEAD_TOKENS_KEPT = timedelta(days=2)
"""How long tokens stay known after they expired or were revoked, so that their late use is answered for what it is."""

AT_ONCE = 500
"""Rings of a kind in one sweep; the next sweep goes on."""


@dataclass(frozen=True)
class Due:
    task: str
    id: str


def sweep_up(context: Context, now: datetime) -> int:
    """Ring everything due, then tidy; the number of rings."""
    with transaction(context.sessions) as session:
        due = find_due(session, context.settings, now)
    rung = _ring_all(context, due)
    with transaction(context.sessions) as session:
        tidy(session, now)
    return rung


def find_due(session: Session, settings: Settings, now: datetime) -> list[Due]:
    """Launches, refits, comparisons and deliveries that were not made: due for a while and in nobody's hands."""
    launches = (
        select(Attempt.id)
        .join(Run, (Run.id == Attempt.run_id) & (Run.attempt == Attempt.number))
        .where(Run.status == Status.LAUNCHING, Run.desired_state == DesiredState.RUN)
        .where(Attempt.external_ref.is_(None), is_past(Attempt.created_at, now, PATIENCE))
        .where(is_reached(Attempt.lease_expires_at, now, launch.longest_claim(settings)))
    )
    fitted = func.coalesce(Run.fitted_at, Run.created_at)
    refits = (
        select(Run.id)
        .where(Run.dirty_at.is_not(None))
        .where(or_(is_past(Run.dirty_at, now, PATIENCE), fitted <= now - LONG))  # it moves with every report
        .where(is_reached(Run.fit_lease_expires_at, now, refit.longest_claim(settings)))
        .order_by(fitted, Run.id)
    )
    again = (  # its evaluations are not new: a fit of them failed
        select(Run.id)
        .where(is_due_again(Run.refit_at, now, PATIENCE), Run.dirty_at.is_(None))
        .where(is_reached(Run.fit_lease_expires_at, now, refit.longest_claim(settings)))
        .order_by(Run.refit_at, Run.id)
    )
    deliveries = (
        select(Delivery.id)
        .where(Delivery.status == "pending", notify.is_due(now, PATIENCE))
        .where(is_reached(Delivery.lease_expires_at, now, lease_of(settings)))
    )
    comparisons = (
        select(SweepComparison.sweep_id)
        .where(or_(is_past(SweepComparison.dirty_at, now, PATIENCE), _comparison_is_due_again(now)))
        .where(compare.has_rested(now, PATIENCE))
        .where(is_reached(SweepComparison.lease_expires_at, now, lease_of(settings)))
    )
    wanted: list[tuple[str, Any]] = [
        (LAUNCH_TASK, launches),
        (REFIT_TASK, refits),
        (REFIT_TASK, again),
        (COMPARE_TASK, comparisons),
        (DELIVER_TASK, deliveries),
    ]
    return [Due(task, found) for task, query in wanted for found in session.scalars(query.limit(AT_ONCE))]


def _comparison_is_due_again(now: datetime) -> ColumnElement[bool]:
    row = SweepComparison
    return and_(row.dirty_at.is_(None), is_due_again(row.again_at, now, PATIENCE))


def tidy(session: Session, now: datetime) -> None:
    """Let tokens of superseded attempts run out, and delete what nobody will ask for again."""
    _let_superseded_tokens_expire(session, now)
    published = OutboxMessage.published_at < now - KEPT
    session.execute(delete(OutboxMessage).where(published))
    session.execute(delete(IdempotencyKey).where(IdempotencyKey.created_at < now - KEYS_KEPT))
    session.execute(delete(Delivery).where(_test_of_old(now)))
    dead = or_(Token.expires_at < now - DEAD_TOKENS_KEPT, Token.revoked_at < now - DEAD_TOKENS_KEPT)
    unreferenced = ~exists().where(IdempotencyKey.token_id == Token.id)
    session.execute(delete(Token).where(Token.kind.in_(["ingest", "login", "session"]), dead, unreferenced))


def _test_of_old(now: datetime) -> ColumnElement[bool]:
    """Tests of channels; the newest of each is kept: the settings tell how it went."""
    later = aliased(Delivery)
    newer = exists().where(later.event == TEST, later.channel_id == Delivery.channel_id, later.id > Delivery.id)
    return and_(Delivery.event == TEST, Delivery.status != "pending", Delivery.created_at < now - KEPT, newer)


def _let_superseded_tokens_expire(session: Session, now: datetime) -> None:
    """Not at once: a late report of an old attempt is to be told that it is superseded, not that its token is bad."""
    superseded = exists().where(Run.id == Token.run_id, Run.attempt > Token.attempt)
    living = Token.kind == "ingest", Token.expires_at.is_(None), Token.revoked_at.is_(None), superseded
    ends = update(Token).where(*living).values(expires_at=now + INGEST_GRACE)
    session.execute(ends, execution_options={"synchronize_session": False})


def _ring_all(context: Context, due: list[Due]) -> int:
    """The number rung. With the broker down there is no use in going on."""
    for done, item in enumerate(due):
        try:
            context.ring(item.task, item.id, expires_s=expires_s(sweep_every_s(context.settings)))
        except BrokerDown as down:
            log.warning("%d things due were not rung: %s", len(due) - done, down)
            return done
    return len(due)
