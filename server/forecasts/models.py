"""Tables of forecasts (one per refit) and recommendations (what a forecast advises)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, func, text
from sqlalchemy.orm import Mapped, mapped_column

from server.database import Base, new_id


class Forecast(Base):
    """What was said of a run at one moment; never changed afterwards, so that it can be scored."""

    __tablename__ = "forecasts"
    __table_args__ = (Index("ix_forecasts_run_id_created_at", "run_id", "created_at"),)

    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: new_id("fct"))
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"))
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    at_compute: Mapped[float]  # compute of the last evaluation it has seen
    at_step: Mapped[int]
    points: Mapped[int]
    unit: Mapped[str]
    summary: Mapped[dict[str, Any]]  # Fit.to_dict(): A, B, C_mid, R0, identified, misfit, at_budget, advice; and prior
    band: Mapped[dict[str, Any]]  # compute, median, lower50, upper50, lower90, upper90: equal-length lists
    state: Mapped[dict[str, Any]]  # what `science.watch` needs to judge later points against it
    sentence: Mapped[str]
    seconds: Mapped[float]


class Recommendation(Base):
    """Advice for a person: accepted or dismissed with a reason, or superseded by newer advice."""

    __tablename__ = "recommendations"
    __table_args__ = (
        CheckConstraint("action IN ('stop', 'continue', 'scale', 'undecided')", name="action"),
        CheckConstraint("status IN ('open', 'accepted', 'dismissed', 'superseded')", name="status"),
        Index("ix_recommendations_run_id_id", "run_id", "id"),
        Index("uq_recommendations_open", "run_id", unique=True, postgresql_where=text("status = 'open'")),
    )

    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: new_id("adv"))
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"))
    forecast_id: Mapped[str] = mapped_column(ForeignKey("forecasts.id"))
    action: Mapped[str]
    reason: Mapped[str]
    numbers: Mapped[dict[str, Any]]
    status: Mapped[str] = mapped_column(default="open")
    decided_by: Mapped[str | None]
    decided_reason: Mapped[str | None]
    decided_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
