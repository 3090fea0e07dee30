"""What the alerts room takes and gives over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from forecurve.recipes import Name
from server.bodies import Body

from .channels import shown_url
from .models import Channel

Level = Literal["WARN", "ALERT"]
Kind = Literal["slack", "webhook", "email"]
Topic = Literal["alerts", "advice", "ends"]


class AlertRead(BaseModel):
    """Something a person should see about a run."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    run_id: str
    kind: str = Field(description="below_forecast, fell (before a forecast was frozen) or run_failed")
    level: Level
    title: str
    text: str
    since_compute: float | None = Field(description="From which compute on it holds, in the run's unit.")
    at_compute: float | None = Field(description="At which compute it was seen, in the run's unit.")
    back_since: float | None = Field(
        description="From which compute on the run is back within its forecast or above it; null while it is not."
    )
    evidence: dict[str, Any]
    opened_at: datetime
    acknowledged_at: datetime | None
    resolved_at: datetime | None
    resolved_attempt: int | None = Field(
        description="The newest then that had said something new: not one of a log that was being sent anew."
    )
    resolved_compute: float | None = Field(
        description="Up to which compute the matter is settled: only later evaluations, or those of a later attempt, "
        "can open such an alert anew."
    )


class ChannelCreate(Body):
    """A place to send alerts and news to."""

    name: Annotated[Name, Field(max_length=100)]
    kind: Kind
    url: str = Field(
        max_length=2000,
        description="https://, or http:// to a private address where those are allowed; without user name or password. "
        "Of kind `email` one address, such as `mailto:ops@example.com`.",
        json_schema_extra={"format": "uri", "pattern": "^(https?://[^/@ ]+|mailto:[^@ ]+@[^@ ]+)"},
    )
    min_level: Level = Field("ALERT", description="The lowest level of alerts that is sent here.")
    hears: list[Topic] = Field(
        ["alerts"],
        min_length=1,
        max_length=3,
        description="What is sent here: `alerts`; `advice`, when a run should be stopped or is worth more than its "
        "budget; `ends`, when a run of its own, or a sweep, is over.",
    )


class ChannelRead(BaseModel):
    """A channel, without its secret; the path of a Slack URL is a credential and is not shown either."""

    id: str
    name: str
    kind: Kind
    url: str
    min_level: Level
    hears: list[Topic]
    created_at: datetime

    @classmethod
    def of(cls, channel: Channel) -> ChannelRead:
        return cls(**_channel_fields(channel))


class ChannelCreated(ChannelRead):
    """A new channel with its secret, shown this once: verify `webhook-signature` with it (Standard Webhooks). A mailbox
    has none."""

    secret: str

    @classmethod
    def of(cls, channel: Channel) -> ChannelCreated:
        return cls(**_channel_fields(channel), secret=channel.secret)


class DeliveryRead(BaseModel):
    """What was told to one channel, and how it went. It is of an alert, of advice, of a run or of a sweep that is over,
    or a test."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    alert_id: str | None
    recommendation_id: str | None = Field(description="Of advice.")
    run_id: str | None = Field(description="A run of its own that is over.")
    sweep_id: str | None = Field(description="A sweep that is over.")
    channel_id: str
    level: Level | None = Field(description="Of an alert, or of a test.")
    event: Literal[
        "alert",
        "alert.back",
        "alert.down_again",
        "alert.resolved",
        "advice",
        "run.over",
        "sweep.over",
        "channel.test",
    ] = Field(
        description="What it tells: that the alert was opened or raised, that its run is back, that it fell again "
        "after that, or that the alert was settled by itself; advice; an end; or that it is a test, tried once."
    )
    reason: str | None = Field(description="Why, where the alert itself does not say it.")
    status: Literal["pending", "delivered", "failed"]
    tries: int
    not_before: datetime = Field(description="The next try is not before this time, while pending.")
    response_status: int | None
    response_text: str | None = Field(description="The first 2 KB of the answer, or why there was none.")
    created_at: datetime
    delivered_at: datetime | None


def _channel_fields(channel: Channel) -> dict[str, Any]:
    return {
        "id": channel.id,
        "name": channel.name,
        "kind": channel.kind,
        "url": shown_url(channel),
        "min_level": channel.min_level,
        "hears": channel.hears,
        "created_at": channel.created_at,
    }
