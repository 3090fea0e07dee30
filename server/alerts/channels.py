"""Channels: where alerts and news are sent, and the secret that signs what is sent."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

import httpx
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from server.errors import Conflict, Invalid, NotFound
from server.events.outbox import enqueue
from server.events.service import record
from server.pagination import newest_first
from server.settings import Settings

from .addresses import is_private, parse_address, refusal
from .mailboxes import SCHEME, mailbox
from .models import ALERTS, TEST, TOPICS, Channel, Delivery
from .telling import DELIVER_TASK

_SLACK_HOSTS = ("hooks.slack.com", "hooks.slack-gov.com")
SECRET_PREFIX = "whsec_"
"""Standard Webhooks: what follows is the signing key in base64."""


@dataclass(frozen=True)
class Reach:
    """Where this service can send alerts: to private addresses, and by mail."""

    private: bool = False
    mail: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Reach:
        """As the settings allow."""
        return cls(settings.allow_private_webhooks, bool(settings.smtp_url.get_secret_value()))


def create_channel(
    session: Session,
    *,
    name: str,
    kind: str,
    url: str,
    min_level: str,
    hears: Sequence[str] = (ALERTS,),
    reach: Reach,
    actor: str,
    now: datetime,
) -> Channel:
    """Add a channel, with a fresh secret where deliveries are signed.

    Raises:
        Invalid: nothing could ever be delivered.
        Conflict: a channel in use has this name, by which people tell them apart.
    """
    if kind == "email":
        url, secret = _mail_url(url, reach), ""
    else:
        check_url(url, allow_private=reach.private)
        secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
    if kind == "webhook" and urlsplit(url).hostname in _SLACK_HOSTS:  # it would refuse every alert, and be shown whole
        raise Invalid.field("kind", kind, "is not what Slack understands, and the URL is Slack's; give kind slack")
    _check_is_free(session, name)
    wanted = [topic for topic in TOPICS if topic in hears]
    channel = Channel(name=name, kind=kind, url=url, secret=secret, min_level=min_level, hears=wanted, created_at=now)
    session.add(channel)
    session.flush()
    record(session, "channel.created", actor=actor, channel=channel.id, name=name, channel_kind=kind)
    return channel


def list_channels(session: Session, *, cursor: str | None, limit: int) -> tuple[Sequence[Channel], str | None]:
    """One page of the channels in use, newest first. A deleted channel is gone from here."""
    return newest_first(session, select(Channel).where(Channel.enabled), Channel.id, cursor, limit)


def send_test(session: Session, channel_id: str, *, actor: str, now: datetime) -> Delivery:
    """Send the channel a test message, the way that alerts go; the delivery tells how it went."""
    channel = session.scalar(select(Channel).where(Channel.id == channel_id, Channel.enabled))
    if channel is None:
        raise _unknown(channel_id)
    delivery = Delivery(channel_id=channel.id, level=channel.min_level, event=TEST, not_before=now, created_at=now)
    session.add(delivery)
    session.flush()
    enqueue(session, DELIVER_TASK, delivery.id)
    record(session, "channel.tested", actor=actor, channel=channel.id, name=channel.name, delivery=delivery.id)
    return delivery


def delete_channel(session: Session, channel_id: str, *, actor: str) -> None:
    """Send nothing there any more, and forget its URL and secret. The row stays, because past deliveries name it."""
    gone = update(Channel).where(Channel.id == channel_id, Channel.enabled).values(enabled=False, url="", secret="")
    name = session.scalar(gone.returning(Channel.name))
    if name is None:
        raise _unknown(channel_id)
    waiting = Delivery.channel_id == channel_id, Delivery.status == "pending"
    session.execute(
        update(Delivery).where(*waiting).values(status="failed", lease=None, response_text="The channel was deleted.")
    )
    record(session, "channel.deleted", actor=actor, channel=channel_id, name=name)


def check_url(url: str, *, allow_private: bool) -> None:
    """Refuse a URL that can never be delivered to. A name is resolved and judged anew at each delivery."""
    fault = _fault(url, allow_private=allow_private)
    if fault is not None:
        raise Invalid.field("url", url, fault)


def signing_key(secret: str) -> bytes:
    """The HMAC key in a channel's secret."""
    return base64.b64decode(secret.removeprefix(SECRET_PREFIX))


def shown_url(channel: Channel) -> str:
    """The URL as it may be shown: a Slack webhook's path is itself a credential."""
    if channel.kind != "slack" or not channel.url:
        return channel.url
    parts = urlsplit(channel.url)
    return f"{parts.scheme}://{parts.netloc}/…"


def _check_is_free(session: Session, name: str) -> None:
    session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"channel {name}", 0))))  # two at once
    other = session.scalar(select(Channel.id).where(Channel.name == name, Channel.enabled).limit(1))
    if other is not None:
        message = f"channel {other} is called so already; take another name, or remove that one"
        raise Conflict.field("name", name, message)


def _mail_url(url: str, reach: Reach) -> str:
    address = mailbox(url)
    if not reach.mail:
        raise Invalid.field("kind", "email", "this service sends no mail yet: its operator sets FORECURVE_SMTP_URL")
    return f"{SCHEME}{address}"


def _unknown(channel_id: str) -> NotFound:
    return NotFound.field("channel_id", channel_id, "no such channel; `GET /v1/channels` lists them")


def _fault(url: str, *, allow_private: bool) -> str | None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"this is not a URL ({error}); give one like https://hooks.example.com/services/..."
    if parts.scheme not in (("https", "http") if allow_private else ("https",)) or not host:
        way_out = "an https:// URL, or http:// to a private address" if allow_private else "an https:// URL with a host"
        return f"give {way_out}"
    if parts.username is not None or parts.password is not None:
        return "leave user name and password out of the URL; the body is signed with the channel's secret"
    if not url.isprintable() or " " in url:
        return "a URL has no spaces or control characters"
    address = parse_address(host)
    if address is None:
        return _fault_of_name(url, host)
    reason = refusal(address, allow_private=allow_private)
    if reason is not None:
        return reason
    if parts.scheme == "http" and not is_private(address):
        return f"http:// goes only to private addresses, {host} is public; use https://"
    return None


def _fault_of_name(url: str, host: str) -> str | None:
    try:
        httpx.URL(url).host.encode("idna")  # as a delivery reads it, and looks it up
    except (httpx.InvalidURL, UnicodeError):
        return f"{host} can be no host's name; give one like hooks.example.com"
    return None
