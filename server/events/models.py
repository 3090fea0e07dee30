"""Tables of events (the audit log, and what the browser's stream reads) and of the outbox."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Identity, Index, func, text
from sqlalchemy.orm import Mapped, mapped_column

from server.database import Base, TransactionId

OFF_THE_CHART = text("kind NOT IN ('evaluation', 'forecast')")
"""Of events: those that a chart of the run does not show better than a list. Written out, as the index has it."""


class Event(Base):
    """Something that happened, by whom and why. Append-only.

    `transaction` is the reader's cursor: ids are drawn before commit, so `id > cursor` could skip an event that
    commits late. Readers go by transaction and stop before the oldest one still running (see service.read_after).
    """

    __tablename__ = "events"
    __table_args__ = (
        Index("ix_events_transaction_id", "transaction", "id"),
        Index("ix_events_run_id_transaction_id", "run_id", "transaction", "id"),
        Index("ix_events_run_id_id", "run_id", "id"),
        Index("ix_events_off_the_chart", "run_id", "id", postgresql_where=OFF_THE_CHART),
        Index("ix_events_sweep_id_transaction_id", "sweep_id", "transaction", "id"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    transaction: Mapped[int] = mapped_column(TransactionId, server_default=text("pg_current_xact_id()"))
    kind: Mapped[
        str
    ]  # run.status, run.desired, evaluation, forecast, recommendation, alert, checkpoint, sweep.created, ...
    run_id: Mapped[str | None]
    sweep_id: Mapped[str | None]
    actor: Mapped[str]  # token id, `trainer`, `reconciler`, `policy`, ...
    from_state: Mapped[str | None]
    to_state: Mapped[str | None]
    reason: Mapped[str | None]
    evidence: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class OutboxMessage(Base):
    """A task to publish to the broker, written in the same transaction as the change that asks for it."""

    __tablename__ = "outbox"
    __table_args__ = (
        Index("ix_outbox_due", "not_before", postgresql_where=text("published_at IS NULL")),
        Index("ix_outbox_published", "published_at", postgresql_where=text("published_at IS NOT NULL")),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    task: Mapped[str]
    args: Mapped[list[Any]]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    not_before: Mapped[datetime] = mapped_column(server_default=func.now())
    published_at: Mapped[datetime | None]
