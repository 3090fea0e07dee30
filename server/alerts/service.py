"""Opening, raising, reading, acknowledging and resolving alerts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, exists, func, literal, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, aliased

from forecurve.science.wording import compute_text
from server.database import new_id
from server.errors import NotFound
from server.metrics.curve import Point
from server.metrics.models import Evaluation
from server.metrics.repeated import says_else
from server.pagination import newest_first
from server.runs.history import record_of
from server.runs.models import Run
from server.runs.service import is_over, lock_run

from .models import BACK, BELOW_FORECAST, DOWN_AGAIN, FALLS, OPENED, RESOLVED, Alert, Delivery
from .telling import LEVELS, tell_back, tell_down_again, tell_no_more, tell_opened, tell_resolved

IN_SIGHT = ~exists().where(Run.id == Alert.run_id, Run.archived_at.is_not(None))
"""Of alerts: their run is not archived."""


_FALLEN = aliased(Evaluation)
_SINCE = func.coalesce(Alert.since_compute, Alert.at_compute)
_IS_ABOUT = _FALLEN.run_id == Alert.run_id, _FALLEN.attempt <= Alert.attempt, _FALLEN.compute == _SINCE
_ANEW = Evaluation.run_id == Alert.run_id, *says_else(Alert.attempt)

SUPERSEDED = or_(
    exists().where(*_ANEW, Evaluation.compute <= _SINCE),
    exists().where(*_ANEW, *_IS_ABOUT, Evaluation.step <= _FALLEN.step),  # the same step may have cost more this time
)
"""Of alerts: an attempt that resumed before it has measured anew what the alert is about, which is on no curve now."""


class Settled(NamedTuple):
    """Up to where a run's curve is settled: what a later attempt measures is new, also where an older one had been."""

    attempt: int
    compute: float

    def is_before(self, point: Point) -> bool:
        return (point.attempt, point.compute) > self


def open_alert(
    session: Session,
    run: Run,
    *,
    kind: str,
    level: str,
    title: str,
    text: str,
    now: datetime,
    since_compute: float | None = None,
    back_since: float | None = None,
    above: bool = False,
    at_compute: float | None = None,
    attempt: int | None = None,
    evidence: Mapping[str, Any] | None = None,
    actor: str = "watch",
) -> Alert:
    """Say once that something is wrong with `run`: an alert, its event, a delivery for every channel that wants it.

    A run has at most one open alert of a kind. Saying it again changes nothing but whether the run is back, or `above`
    its forecast even; saying it at a higher level raises the open alert (new words and evidence) and delivers it anew.
    """
    said = {
        "level": level,
        "title": title,
        "text": text + _back_words(run, kind, back_since, above=above),
        "since_compute": since_compute,
        "back_since": back_since,
        "at_compute": at_compute,
        "attempt": attempt,
        "evidence": dict(evidence or {}),
    }
    # Two workers may say it at once: the unique index lets one of them open it.
    fresh = insert(Alert).values(id=new_id("alr"), run_id=run.id, kind=kind, opened_at=now, **said)
    fresh = fresh.on_conflict_do_nothing(index_elements=["run_id", "kind"], index_where=Alert.resolved_at.is_(None))
    opened = session.scalar(fresh.returning(Alert.id))
    mine = select(Alert).where(Alert.run_id == run.id, Alert.kind == kind, Alert.resolved_at.is_(None))
    alert = session.scalars(mine.with_for_update().execution_options(populate_existing=True)).one()
    if opened is not None:
        _announce(session, run, alert, previous=None, above=above, now=now, actor=actor)
    elif LEVELS.index(level) > LEVELS.index(alert.level):
        previous = alert.level
        for name, value in said.items():
            setattr(alert, name, value)
        alert.acknowledged_at = None  # who acknowledged a warning has not seen the alert
        _announce(session, run, alert, previous=previous, above=above, now=now, actor=actor)
    else:
        _note_back(session, run, alert, back_since, above=above, actor=actor, now=now)
    return alert


def note_back(
    session: Session, run: Run, since: Callable[[Alert], float], *, above: bool, upto: float, actor: str, now: datetime
) -> None:
    """Say in the open alerts of falls of `run` that nothing shows them any more, and `since` which compute. A curve
    that goes `upto` less than where one began, as while a log is sent anew, says nothing of it."""
    reached = func.coalesce(Alert.since_compute, Alert.at_compute) < upto
    for alert in session.scalars(select(Alert).where(*_open_falls(run), reached)):
        _note_back(session, run, alert, since(alert), above=above, actor=actor, now=now)


def list_alerts(
    session: Session, *, run_id: str | None, is_open: bool | None, cursor: str | None, limit: int
) -> tuple[Sequence[Alert], str | None]:
    """One page of alerts, newest first: of one run, or of all that are not archived. Open means: not resolved."""
    query = select(Alert).where(IN_SIGHT if run_id is None else Alert.run_id == run_id)
    if is_open is not None:
        query = query.where(Alert.resolved_at.is_(None) if is_open else Alert.resolved_at.is_not(None))
    return newest_first(session, query, Alert.id, cursor, limit)


def list_deliveries(
    session: Session, *, alert_id: str | None, status: str | None = None, cursor: str | None, limit: int
) -> tuple[Sequence[Delivery], str | None]:
    """One page of deliveries, newest first."""
    query = select(Delivery)
    if status is not None:
        query = query.where(Delivery.status == status)
    if alert_id is not None:
        query = query.where(Delivery.alert_id == alert_id)
    return newest_first(session, query, Delivery.id, cursor, limit)


def get_delivery(session: Session, delivery_id: str) -> Delivery:
    delivery = session.get(Delivery, delivery_id)
    if delivery is None:
        raise NotFound.field("delivery_id", delivery_id, "no such delivery; `GET /v1/deliveries` lists them")
    return delivery


def get_alert(session: Session, alert_id: str) -> Alert:
    alert = session.get(Alert, alert_id)
    if alert is None:
        raise _unknown(alert_id)
    return alert


def acknowledge(session: Session, alert_id: str, *, actor: str, now: datetime) -> Alert:
    """Say that a person has seen the alert. A second time changes nothing."""
    alert = session.scalar(select(Alert).where(Alert.id == alert_id).with_for_update())
    if alert is None:
        raise _unknown(alert_id)
    if alert.acknowledged_at is None:
        alert.acknowledged_at = now
        run = session.get_one(Run, alert.run_id)
        record_of(session, run, "alert.acknowledged", actor=actor, alert=alert.id)
    return alert


def resolve(session: Session, alert_id: str, *, actor: str, now: datetime) -> Alert:
    """Say that the matter is settled. A second time changes nothing.

    The same may be said of the run again, but only for what it shows from now on (`settled_at`).
    """
    run_id = session.scalar(select(Alert.run_id).where(Alert.id == alert_id))
    if run_id is None:
        raise _unknown(alert_id)
    run = lock_run(session, run_id)  # no refit writes down an alarm meanwhile
    alert = session.get_one(Alert, alert_id, populate_existing=True)
    if alert.resolved_at is None:
        _resolve(session, run, alert, actor=actor, reason=None, now=now)
        tell_no_more(session, alert)
    return alert


def resolve_if_over(session: Session, run: Run, *, actor: str, now: datetime) -> None:
    """Resolve the open alerts of falls of a run that is over: once its last evaluations are judged, nothing is left
    to act on. `run` is locked."""
    if not is_over(run) or run.dirty_at is not None or run.refit_at is not None:  # a fit that failed is tried again
        return
    session.flush()
    reason = "The run is over."
    at = max(now, run.finished_at or now)  # the fit may have begun before the end, or by another clock
    for alert in session.scalars(select(Alert).where(*_open_falls(run))):
        _resolve(session, run, alert, actor=actor, reason=reason, now=at)
        tell_resolved(session, alert, reason, now)


def resolve_superseded(session: Session, run: Run, *, actor: str, now: datetime) -> None:
    """Resolve the open alerts of falls that are on no curve any more, as the run resumed before them. They settle
    nothing: what the later attempt shows rings by itself. `run` is locked."""
    session.flush()
    for alert in session.scalars(select(Alert).where(*_open_falls(run), SUPERSEDED)):
        alert.resolved_at = now
        reason = f"The run went on from before it, in attempt {run.attempt}."
        record_of(session, run, RESOLVED, actor=actor, reason=reason, alert=alert.id)
        tell_resolved(session, alert, reason, now)


def settled_at(session: Session, run_id: str, kind: str) -> Settled | None:
    """Up to where a run's alerts of `kind` were resolved; None when none was. What later attempts say up to
    there that had been said is settled as well."""
    mine = Alert.run_id == run_id, Alert.kind == kind
    rows = session.execute(select(Alert.resolved_attempt, Alert.resolved_compute).where(*mine))
    settled = (Settled(attempt, compute) for attempt, compute in rows if attempt is not None and compute is not None)
    last = max(settled, default=None)
    if last is None:
        return None
    ours = select(Evaluation.attempt, Evaluation.compute).where(Evaluation.run_id == run_id)
    anew = ours.where(*says_else(literal(last.attempt)), Evaluation.compute <= last.compute)
    first = session.execute(anew.order_by(Evaluation.attempt, Evaluation.compute).limit(1)).first()
    if first is None:
        newest = session.scalar(select(func.max(Evaluation.attempt)).where(Evaluation.run_id == run_id))
        return last._replace(attempt=max(last.attempt, newest or 0))
    before = Evaluation.attempt == first.attempt, Evaluation.compute < first.compute
    said = session.scalar(select(func.max(Evaluation.compute)).where(Evaluation.run_id == run_id, *before))
    return Settled(first.attempt, -math.inf if said is None else said)


def _open_falls(run: Run) -> tuple[ColumnElement[bool], ...]:
    return Alert.run_id == run.id, Alert.kind.in_(FALLS), Alert.resolved_at.is_(None)


def _note_back(
    session: Session, run: Run, alert: Alert, since: float | None, *, above: bool, actor: str, now: datetime
) -> None:
    """Back, or down again. Where it has been back since does not move while it is; the text says where it is now."""
    turned = (alert.back_since is None) != (since is None)
    fall, back = _fall_words(run, alert), since if turned else alert.back_since
    after = _back_words(run, alert.kind, back, above=above)
    alert.back_since, alert.text = back, fall + after
    if not turned:
        return
    if since is None:
        record_of(session, run, DOWN_AGAIN, actor=actor, alert=alert.id)
        tell_down_again(session, alert, now)
    else:
        record_of(session, run, BACK, actor=actor, reason=after.strip(), alert=alert.id)
        tell_back(session, alert, after.strip(), now)


def _fall_words(run: Run, alert: Alert) -> str:
    """The text of an alert without what it ends with once the run is back."""
    within, above = (_back_words(run, alert.kind, alert.back_since, above=above) for above in (False, True))
    return alert.text.removesuffix(within).removesuffix(above)


def _back_words(run: Run, kind: str, since: float | None, *, above: bool) -> str:
    """What the text of an alert ends with once the run is back."""
    if since is None:
        return ""
    then = f"since {compute_text(since)} {run.compute_unit}"
    if kind != BELOW_FORECAST:
        return f" It has recovered {then}."
    if above:
        return f" It has been back {then} and is above its forecast now."
    return f" It has been back within its forecast {then}."


def _resolve(session: Session, run: Run, alert: Alert, *, actor: str, reason: str | None, now: datetime) -> None:
    alert.resolved_at = now
    alert.resolved_attempt, alert.resolved_compute = _told_up_to(session, run)
    record_of(session, run, RESOLVED, actor=actor, reason=reason, alert=alert.id)


def _told_up_to(session: Session, run: Run) -> tuple[int | None, float | None]:
    """The last attempt that said something new, and how far it came: one that says once more what is known, as while a
    log is sent anew, has not come as far as what is known."""
    mine = Evaluation.run_id == run.id
    newest = select(func.max(Evaluation.attempt)).where(mine, *says_else(Evaluation.attempt - 1)).scalar_subquery()
    told = select(Evaluation.attempt, func.max(Evaluation.compute)).where(mine, Evaluation.attempt == newest)
    row = session.execute(told.group_by(Evaluation.attempt)).first()
    return (None, run.last_compute) if row is None else (row[0], row[1])


def _unknown(alert_id: str) -> NotFound:
    return NotFound.field("alert_id", alert_id, "no such alert; `GET /v1/alerts` lists them")


def _announce(
    session: Session, run: Run, alert: Alert, *, previous: str | None, above: bool, now: datetime, actor: str
) -> None:
    """Event and deliveries of an alert that was opened or raised."""
    record_of(
        session,
        run,
        OPENED,
        actor=actor,
        from_state=previous,
        to_state=alert.level,
        reason=alert.title,
        alert=alert.id,
        alert_kind=alert.kind,
    )
    tell_opened(session, alert, now)
    if alert.back_since is not None:
        tell_back(session, alert, _back_words(run, alert.kind, alert.back_since, above=above).strip(), now)
