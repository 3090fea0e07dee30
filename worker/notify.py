"""Delivering one alert, news or a test to one channel: claim, send outside any transaction, write down how it went."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx
from sqlalchemy import ColumnElement, and_, or_, update
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.channels import signing_key
from server.alerts.mailboxes import SCHEME
from server.alerts.models import TEST, Alert, Channel, Delivery
from server.alerts.news import LAST_LOOK
from server.alerts.telling import DELIVER_TASK, IN_TURN
from server.database import transaction
from server.events.outbox import enqueue
from server.events.service import record
from server.forecasts.models import Forecast
from server.runs.models import Run
from server.settings import Settings

from .clocks import is_ahead, is_reached, lease_of
from .forms import Told, letter, slack
from .mail import Letter, send_mail
from .messages import make_notice, told_of, webhook_body
from .news import news_of
from .safe_http import Answer, Refused, Resolve, post, resolve_host
from .trial import trial_message

MAX_TRIES = 8
_FIRST_WAIT_S, _WAIT_GROWTH, _LONGEST_WAIT_S = 5.0, 4.0, 7200.0
"""5 s, 20 s, 80 s, ... 2 h: eight tries span about four hours, longer than most outages of a chat service."""


@dataclass(frozen=True)
class Content:
    """What is sent, how often that is tried, and what the event of its end is about."""

    message: dict[str, Any] | Letter
    most_tries: int
    about: dict[str, Any]


@dataclass(frozen=True)
class Parcel:
    """A claimed delivery with everything that sending needs; nothing of it is read again."""

    delivery_id: str
    lease: str
    tries: int
    url: str
    secret: str
    content: Content


@dataclass(frozen=True)
class Result:
    """How a try went. `final`: no further try can help. `wait_s`: what the receiver asked for."""

    delivered: bool
    status: int | None
    text: str
    final: bool = False
    wait_s: float = 0.0


def deliver(
    sessions: sessionmaker[Session],
    settings: Settings,
    delivery_id: str,
    now: datetime,
    *,
    resolve: Resolve = resolve_host,
    jitter: Callable[[], float] = random.random,
) -> None:
    """Try once to deliver. Does nothing when the delivery is over, not due, or in another worker's hands.

    `jitter` gives numbers in [0, 1) that spread the retries of many deliveries.
    """
    with transaction(sessions) as session:
        parcel = _claim(session, settings, delivery_id, now)
    if parcel is None:
        return
    result = _send(parcel, settings, now, resolve)
    with transaction(sessions) as session:
        _finish(session, parcel, result, now, jitter)


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` of Standard Webhooks: base64 HMAC-SHA256 over `id.timestamp.body`."""
    content = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(signing_key(secret), content, hashlib.sha256).digest()).decode()


def backoff_s(tries: int, jitter: float) -> float:
    """Seconds to wait after the `tries`-th failed try, give or take 20 %."""
    return float(min(_FIRST_WAIT_S * _WAIT_GROWTH ** (tries - 1), _LONGEST_WAIT_S) * (0.8 + 0.4 * jitter))


def is_due(now: datetime, waited: timedelta = timedelta()) -> ColumnElement[bool]:
    """Whether a delivery has been due for `waited`. The first try of one is put off by a last look at most, and one
    that was tried in the future was tried before a clock was set back: how long it has waited since cannot be told.
    What ends an alert waits for its turn."""
    untried = and_(Delivery.tries == 0, is_ahead(Delivery.not_before, now, LAST_LOOK))
    return and_(IN_TURN, or_(Delivery.not_before <= now - waited, untried, is_ahead(Delivery.tried_at, now)))


def _claim(session: Session, settings: Settings, delivery_id: str, now: datetime) -> Parcel | None:
    lease = secrets.token_hex(8)
    free = or_(Delivery.lease.is_(None), is_reached(Delivery.lease_expires_at, now, lease_of(settings)))
    due = Delivery.id == delivery_id, Delivery.status == "pending", is_due(now), free
    # The try is counted before it is made, so that one which kills its worker is not repeated for ever.
    claim = update(Delivery).where(*due).values(
        lease=lease, lease_expires_at=now + lease_of(settings), tries=Delivery.tries + 1, tried_at=now
    )  # fmt: skip
    delivery = session.scalar(claim.returning(Delivery))
    if delivery is None:
        return None
    channel = session.get_one(Channel, delivery.channel_id)
    if delivery.event == TEST:
        content = _of_a_test(channel, settings, now)
    elif delivery.alert_id is None:
        content = _of_news(session, settings, delivery, channel, now)
    else:
        content = _of_an_alert(session, settings, delivery, channel, now)
    return Parcel(delivery.id, lease, delivery.tries, channel.url, channel.secret, content)


def _of_a_test(channel: Channel, settings: Settings, now: datetime) -> Content:
    # A person waits for how it goes and can send another: one that came hours later would only puzzle.
    message = trial_message(channel, public_url=settings.public_url, now=now)
    return Content(message, most_tries=1, about={"channel": channel.id})


def _of_an_alert(session: Session, settings: Settings, delivery: Delivery, channel: Channel, now: datetime) -> Content:
    alert = session.get_one(Alert, delivery.alert_id)
    run = session.get_one(Run, alert.run_id)
    forecast = session.get(Forecast, run.forecast_id) if run.forecast_id else None
    notice = make_notice(delivery, alert, run, forecast, public_url=settings.public_url)
    message = webhook_body(notice, now) if channel.kind == "webhook" else _for_people(told_of(notice), channel)
    return Content(message, MAX_TRIES, about={"run_id": run.id, "sweep_id": run.sweep_id, "alert": alert.id})


def _of_news(session: Session, settings: Settings, delivery: Delivery, channel: Channel, now: datetime) -> Content:
    news = news_of(session, delivery, now, public_url=settings.public_url)
    message = news.webhook_body(now) if channel.kind == "webhook" else _for_people(news.told, channel)
    return Content(message, MAX_TRIES, about=news.about)


def _for_people(told: Told, channel: Channel) -> dict[str, Any] | Letter:
    return slack(told) if channel.kind == "slack" else letter(told)


def _send(parcel: Parcel, settings: Settings, now: datetime, resolve: Resolve) -> Result:
    most = parcel.content.most_tries
    if parcel.tries > most:
        given_up = "the try" if most == 1 else f"{most} tries"
        return Result(False, None, f"Given up: {given_up} did not end.", final=True)
    if isinstance(parcel.content.message, Letter):
        return _mailed(parcel, parcel.content.message, settings, now)
    body = json.dumps(parcel.content.message, ensure_ascii=False, allow_nan=False).encode()
    timestamp = int(now.timestamp())
    headers = {
        "content-type": "application/json",
        "user-agent": "forecurve",
        "webhook-id": parcel.delivery_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(parcel.secret, parcel.delivery_id, timestamp, body),
    }
    try:
        answer = post(parcel.url, body, headers, allow_private=settings.allow_private_webhooks, resolve=resolve)
    except Refused as refused:
        return Result(False, None, f"Not sent: {refused}.", final=True)
    except socket.gaierror as error:
        return Result(
            False, None, f"No answer: the address of {httpx.URL(parcel.url).host} is not known ({error.strerror})"
        )
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, OSError) as error:
        return Result(False, None, f"No answer: {type(error).__name__}: {error}")
    return _judge(answer)


def _mailed(parcel: Parcel, message: Letter, settings: Settings, now: datetime) -> Result:
    server = settings.smtp_url.get_secret_value()
    if not server:
        return Result(False, None, "Not sent: FORECURVE_SMTP_URL of the worker names no mail server.")
    to, message_id = parcel.url.removeprefix(SCHEME), parcel.delivery_id
    answer = send_mail(server, settings.smtp_from, to, message, message_id=message_id, now=now)
    return Result(answer.accepted, answer.code, answer.text, final=answer.refused_for_good)


def _judge(answer: Answer) -> Result:
    gone = answer.status == 410  # Standard Webhooks: the receiver wants no more of these
    return Result(answer.is_success, answer.status, answer.text, final=gone, wait_s=answer.retry_after_s or 0.0)


def _finish(session: Session, parcel: Parcel, result: Result, now: datetime, jitter: Callable[[], float]) -> None:
    values: dict[str, object] = {
        "lease": None,
        "lease_expires_at": None,
        "response_status": result.status,
        "response_text": result.text[:2048],
    }
    over = result.delivered or result.final or parcel.tries >= parcel.content.most_tries
    again_at = now + timedelta(seconds=max(backoff_s(parcel.tries, jitter()), min(result.wait_s, _LONGEST_WAIT_S)))
    if result.delivered:
        values |= {"status": "delivered", "delivered_at": now}
    elif over:
        values |= {"status": "failed", "given_up_at": now}
    else:
        values |= {"not_before": again_at}
    mine = Delivery.id == parcel.delivery_id, Delivery.lease == parcel.lease
    if session.scalar(update(Delivery).where(*mine).values(**values).returning(Delivery.id)) is None:
        return  # the lease ran out, or the channel was deleted meanwhile
    if not over:
        enqueue(session, DELIVER_TASK, parcel.delivery_id, not_before=again_at)
        return
    record(
        session,
        "delivery",
        actor="notify",
        from_state="pending",
        to_state=str(values["status"]),
        reason=None if result.delivered else result.text[:200],
        delivery=parcel.delivery_id,
        tries=parcel.tries,
        **parcel.content.about,
    )
