"""Tables of the ingest: numbered batches, metric points, evaluations."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, SmallInteger, func
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from server.database import Base


class IngestBatch(Base):
    """A batch that was taken: `(run, attempt, seq)` deduplicates, `digest` tells a replay from a second batch."""

    __tablename__ = "ingest_batches"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str]
    points: Mapped[int]
    received_at: Mapped[datetime] = mapped_column(server_default=func.now())


class MetricPoint(Base):
    """One value of one metric. Readers take the newest attempt per step, so a resumed run has no doubled points."""

    __tablename__ = "metric_points"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    metric: Mapped[str] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    compute: Mapped[float | None]
    value: Mapped[float]
    time: Mapped[datetime]


class Evaluation(Base):
    """One validation point: the pass rate on the held-out prompts.

    `counts` has the successes of each prompt, in a fixed order, when the trainer sent them; `variance` is the
    sampling variance of `reward` from them (fixed prompt set).
    """

    __tablename__ = "evaluations"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    compute: Mapped[float]
    reward: Mapped[float]
    prompts: Mapped[int | None]
    samples: Mapped[int | None]
    counts: Mapped[list[int] | None] = mapped_column(ARRAY(SmallInteger))
    variance: Mapped[float | None]
    details: Mapped[dict[str, Any]] = mapped_column(default=dict)  # e.g. mean response length, truncated share
    time: Mapped[datetime]
