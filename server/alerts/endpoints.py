"""HTTP door of the alerts room."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from server.access.idempotency import IdempotentRoute
from server.dependencies import Admin, AppSettings, DbSession, Now, Operator, Reader
from server.filters import OfAlert, OfRun
from server.pagination import Cursor, Limit, Page
from server.problems import problems

from . import channels, service
from .schemas import AlertRead, ChannelCreate, ChannelCreated, ChannelRead, DeliveryRead

router = APIRouter(tags=["alerts"], route_class=IdempotentRoute)


@router.get("/alerts", responses=problems(404))
def list_alerts(
    session: DbSession,
    _: Reader,
    run_id: OfRun,
    is_open: Annotated[bool | None, Query(alias="open", description="Only alerts that are, or are not, open.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[AlertRead]:
    """Alerts, newest first. An alert is open until it is resolved; acknowledging it does not close it.

    Those of archived runs are listed by run only.
    """
    rows, following = service.list_alerts(session, run_id=run_id, is_open=is_open, cursor=cursor, limit=limit)
    return Page(items=[AlertRead.model_validate(row) for row in rows], next_cursor=following)


@router.get("/alerts/{alert_id:id}", responses=problems(404))
def read_alert(alert_id: str, session: DbSession, _: Reader) -> AlertRead:
    """One alert, also of an archived run."""
    return AlertRead.model_validate(service.get_alert(session, alert_id))


@router.post("/alerts/{alert_id:id}:acknowledge", responses=problems(404))
def acknowledge_alert(alert_id: str, session: DbSession, identity: Operator, now: Now) -> AlertRead:
    """Say that you have seen the alert."""
    return AlertRead.model_validate(service.acknowledge(session, alert_id, actor=identity.token_id, now=now))


@router.post("/alerts/{alert_id:id}:resolve", responses=problems(404))
def resolve_alert(alert_id: str, session: DbSession, identity: Operator, now: Now) -> AlertRead:
    """Close the alert. It opens anew only for what the run shows from now on."""
    return AlertRead.model_validate(service.resolve(session, alert_id, actor=identity.token_id, now=now))


@router.post("/channels", status_code=201, responses=problems(409))
def create_channel(
    body: ChannelCreate, session: DbSession, identity: Admin, settings: AppSettings, now: Now
) -> ChannelCreated:
    """Add a Slack incoming webhook, a generic webhook or a mailbox. The answer carries the signing secret, once."""
    channel = channels.create_channel(
        session,
        name=body.name,
        kind=body.kind,
        url=body.url,
        min_level=body.min_level,
        hears=body.hears,
        reach=channels.Reach.of(settings),
        actor=identity.token_id,
        now=now,
    )
    return ChannelCreated.of(channel)


@router.get("/channels")
def list_channels(session: DbSession, _: Admin, cursor: Cursor = None, limit: Limit = 50) -> Page[ChannelRead]:
    """The channels in use."""
    rows, following = channels.list_channels(session, cursor=cursor, limit=limit)
    return Page(items=[ChannelRead.of(row) for row in rows], next_cursor=following)


@router.post("/channels/{channel_id:id}:test", status_code=202, responses=problems(404))
def test_channel(channel_id: str, session: DbSession, identity: Admin, now: Now) -> DeliveryRead:
    """Send a test message the way that alerts go, once. `GET /v1/deliveries/{id}` of the answer says how it went."""
    return DeliveryRead.model_validate(channels.send_test(session, channel_id, actor=identity.token_id, now=now))


@router.delete("/channels/{channel_id:id}", status_code=204, responses=problems(404))
def delete_channel(channel_id: str, session: DbSession, identity: Admin) -> None:
    """Send nothing there any more; its URL and secret are forgotten."""
    channels.delete_channel(session, channel_id, actor=identity.token_id)


@router.get("/deliveries", responses=problems(404))
def list_deliveries(
    session: DbSession,
    _: Reader,
    alert_id: OfAlert,
    status: Annotated[
        Literal["pending", "delivered", "failed"] | None,
        Query(description="`failed` were given up, were overtaken, or their channel was deleted."),
    ] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[DeliveryRead]:
    """Deliveries of alerts, news and tests to channels: what was sent, what was answered, what is still to be tried."""
    rows, following = service.list_deliveries(session, alert_id=alert_id, status=status, cursor=cursor, limit=limit)
    return Page(items=[DeliveryRead.model_validate(row) for row in rows], next_cursor=following)


@router.get("/deliveries/{delivery_id:id}", responses=problems(404))
def read_delivery(delivery_id: str, session: DbSession, _: Reader) -> DeliveryRead:
    """One delivery; `pending` until it was taken or given up."""
    return DeliveryRead.model_validate(service.get_delivery(session, delivery_id))
