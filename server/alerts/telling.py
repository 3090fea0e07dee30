"""What channels are told of an alert: that it was opened or raised, and once more when that holds no longer.

Receivers that keep incidents open by an alert's id need to hear when to close them. So each that was told of an alert
hears when its run is back, or when the alert is settled by itself, whichever comes first. If the run falls again after
that, it hears so, and of the end then. What a person settles is not told: the person knows. Nor is it told any more
that there was an alert, to whoever could not be reached until then: nothing would close it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, delete, exists, not_, or_, select, update
from sqlalchemy.orm import Session, aliased

from server.database import new_id
from server.events.outbox import enqueue

from .models import ALERTS, BACK, DOWN_AGAIN, ENDS, OPENED, RESOLVED, Alert, Channel, Delivery

LEVELS = ("WARN", "ALERT")
"""From the lowest to the highest."""

DELIVER_TASK = "worker.tasks.deliver"

_Told = Mapping[str, Delivery]
"""What a channel was told of an alert, by event."""

_DOWN = "Overtaken: the run is down again."
_RAISED = "Overtaken: the alert was raised."
_SETTLED = "Overtaken: a person resolved the alert."

_before = aliased(Delivery)
IN_TURN = or_(
    Delivery.event.not_in(ENDS),
    not_(
        exists().where(
            _before.alert_id == Delivery.alert_id,
            _before.channel_id == Delivery.channel_id,
            _before.event.not_in(ENDS),
            _before.status == "pending",
        )
    ),
)
"""Of deliveries: no end overtakes the beginning that is still to be tried again, else the receiver would keep that."""


def hearing(topic: str) -> Select[str]:
    """The channels in use that hear of it."""
    return select(Channel.id).where(Channel.enabled, Channel.hears.contains([topic]))


def tell_opened(session: Session, alert: Alert, now: datetime) -> None:
    """To every channel that wants the level of an alert that was opened or raised."""
    _overtake(session, alert, Delivery.level != alert.level, why=_RAISED)  # the alert's own delivery says more
    _overtake(session, alert, Delivery.event.in_(ENDS), why=_DOWN)
    reached = LEVELS[: LEVELS.index(alert.level) + 1]
    for channel_id in session.scalars(hearing(ALERTS).where(Channel.min_level.in_(reached))):
        _tell(session, alert, channel_id, OPENED, None, now)
    session.flush()


def tell_back(session: Session, alert: Alert, reason: str, now: datetime) -> None:
    """That its run is back: to whoever was told of it, once."""
    for channel_id, told in _told(session, alert).items():
        if _was_told(told, OPENED) and BACK not in told:
            _tell(session, alert, channel_id, BACK, reason, now)


def tell_down_again(session: Session, alert: Alert, now: datetime) -> None:
    """That its run is not back after all: to whoever may have been told so, once."""
    _overtake(session, alert, Delivery.event.in_(ENDS), why=_DOWN)
    for channel_id, told in _told(session, alert).items():
        if BACK in told and DOWN_AGAIN not in told:
            _tell(session, alert, channel_id, DOWN_AGAIN, None, now)


def tell_resolved(session: Session, alert: Alert, reason: str, now: datetime) -> None:
    """That it was settled by itself: to whoever was told of it, and not that its run is back."""
    for channel_id, told in _told(session, alert).items():
        knows = _was_told(told, BACK) and DOWN_AGAIN not in told
        if _was_told(told, OPENED) and not knows:
            _tell(session, alert, channel_id, RESOLVED, reason, now)


def tell_no_more(session: Session, alert: Alert) -> None:
    """A person has settled it."""
    _overtake(session, alert, why=_SETTLED)


def _told(session: Session, alert: Alert) -> Mapping[str, _Told]:
    """By channel in use, at the level that the alert has."""
    session.flush()
    mine = Delivery.alert_id == alert.id, Delivery.level == alert.level
    used = and_(Channel.id == Delivery.channel_id, Channel.enabled)
    query = select(Delivery).join(Channel, used).where(*mine).execution_options(populate_existing=True)
    told: dict[str, dict[str, Delivery]] = defaultdict(dict)
    for delivery in session.scalars(query):
        told[delivery.channel_id][delivery.event] = delivery
    return told


def _was_told(told: _Told, event: str) -> bool:
    return event in told and told[event].status != "failed"


def _overtake(session: Session, alert: Alert, *which: ColumnElement[bool], why: str) -> None:
    overtake(session, Delivery.alert_id == alert.id, *which, why=why)


def overtake(session: Session, *which: ColumnElement[bool], why: str) -> None:
    """Send no more of what is pending; what was tried may have arrived, and stays as a trace."""
    pending = Delivery.status == "pending", *which
    session.execute(delete(Delivery).where(*pending, Delivery.tries == 0))
    session.execute(update(Delivery).where(*pending).values(status="failed", lease=None, response_text=why))


def _tell(session: Session, alert: Alert, channel_id: str, event: str, reason: str | None, now: datetime) -> None:
    said = {"alert_id": alert.id, "channel_id": channel_id, "level": alert.level, "event": event, "reason": reason}
    delivery = Delivery(id=new_id("dlv"), not_before=now, **said)
    session.add(delivery)
    enqueue(session, DELIVER_TASK, delivery.id)
