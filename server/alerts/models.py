"""Tables of alerts, the channels they go to, and each delivery."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from server.database import Base, new_id

BELOW_FORECAST = "below_forecast"
"""A run fell below its own frozen forecast."""
FELL = "fell"
"""A run fell before it had a forecast to be held to."""

FALLS = (BELOW_FORECAST, FELL)

OPENED, BACK, DOWN_AGAIN, RESOLVED = "alert", "alert.back", "alert.down_again", "alert.resolved"
"""What a delivery tells of an alert: the events of its run's history."""
TEST = "channel.test"
ADVICE, RUN_OVER, SWEEP_OVER = "advice", "run.over", "sweep.over"
"""What a delivery tells that is no alert, to channels that want to hear it."""
ALERTS, OF_ADVICE, OF_ENDS = TOPICS = ("alerts", "advice", "ends")
"""What a channel may hear of: alerts; advice to stop or to scale a run; that a run of its own or a sweep is over."""
ENDS = (BACK, RESOLVED)
"""After which a receiver need not hold the alert for open."""


class Alert(Base):
    """Something a person should see. At most one open alert per run and kind."""

    __tablename__ = "alerts"
    __table_args__ = (
        CheckConstraint("level IN ('WARN', 'ALERT')", name="level"),
        Index("ix_alerts_run_id_id", "run_id", "id"),
        Index("uq_alerts_open", "run_id", "kind", unique=True, postgresql_where=text("resolved_at IS NULL")),
    )

    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: new_id("alr"))
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"))
    kind: Mapped[str]  # below_forecast, fell, run_failed
    level: Mapped[str]
    title: Mapped[str]
    text: Mapped[str]
    since_compute: Mapped[float | None]
    at_compute: Mapped[float | None]
    back_since: Mapped[float | None]  # compute from which on the run is back within its forecast
    attempt: Mapped[int | None]  # of the newest evaluation that it was opened or raised for
    evidence: Mapped[dict[str, Any]]
    opened_at: Mapped[datetime] = mapped_column(server_default=func.now())
    acknowledged_at: Mapped[datetime | None]
    resolved_at: Mapped[datetime | None]
    resolved_attempt: Mapped[int | None]  # the newest then that had said something new
    resolved_compute: Mapped[float | None]  # of its newest evaluation then


class Channel(Base):
    """Where alerts are sent. `secret` signs the body of a webhook (Standard Webhooks); a mailbox has none."""

    __tablename__ = "channels"
    __table_args__ = (CheckConstraint("kind IN ('slack', 'webhook', 'email')", name="kind"),)

    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: new_id("chn"))
    name: Mapped[str]
    kind: Mapped[str]
    url: Mapped[str]
    secret: Mapped[str]
    min_level: Mapped[str] = mapped_column(default="ALERT")  # of alerts
    hears: Mapped[list[str]] = mapped_column(ARRAY(String), default=lambda: [ALERTS], server_default=f"{{{ALERTS}}}")
    enabled: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Delivery(Base):
    """One thing that is told to one channel: retried with back-off until delivered or given up.

    It is of an alert, of advice, of a run or of a sweep; or it is a test message, which a person waits for: it is tried
    once.
    """

    __tablename__ = "deliveries"
    __table_args__ = (
        UniqueConstraint("alert_id", "channel_id", "level", "event"),
        UniqueConstraint("recommendation_id", "channel_id"),
        CheckConstraint(
            "num_nonnulls(alert_id, recommendation_id, run_id, sweep_id) = (event <> 'channel.test')::int", name="about"
        ),
        CheckConstraint("status IN ('pending', 'delivered', 'failed')", name="status"),
        Index("ix_deliveries_pending", "not_before", postgresql_where=text("status = 'pending'")),
    )

    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: new_id("dlv"))
    alert_id: Mapped[str | None] = mapped_column(ForeignKey("alerts.id"))
    recommendation_id: Mapped[str | None] = mapped_column(ForeignKey("recommendations.id"))
    run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id"))  # that is over
    sweep_id: Mapped[str | None] = mapped_column(ForeignKey("sweeps.id"))
    channel_id: Mapped[str] = mapped_column(ForeignKey("channels.id"))
    level: Mapped[str | None]  # of an alert, and of a test
    event: Mapped[str] = mapped_column(default=OPENED, server_default=OPENED)  # what it tells
    reason: Mapped[str | None]  # why, where that is not in the alert itself
    status: Mapped[str] = mapped_column(default="pending")
    tries: Mapped[int] = mapped_column(default=0)
    tried_at: Mapped[datetime | None]  # the last time
    not_before: Mapped[datetime] = mapped_column(server_default=func.now())
    lease: Mapped[str | None]
    lease_expires_at: Mapped[datetime | None]
    response_status: Mapped[int | None]
    response_text: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    delivered_at: Mapped[datetime | None]
    given_up_at: Mapped[datetime | None]  # not of one that was overtaken, or whose channel was deleted
