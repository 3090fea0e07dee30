"""Tables of sweeps (a base recipe and the design that varies it) and of their arms' comparison with the control."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import CheckConstraint, ForeignKey, func
from sqlalchemy.orm import Mapped, mapped_column

from server.database import Base, new_id
from server.labels.models import Labels

ALLOCATE: Final = "allocate"
"""The policy by which runs of a sweep share one budget of compute."""


class Sweep(Labels, Base):
    __tablename__ = "sweeps"
    __table_args__ = (
        CheckConstraint("policy IN ('advise', 'auto', 'allocate')", name="policy"),
        CheckConstraint("(policy = 'allocate') = (budget_compute IS NOT NULL)", name="budget_compute"),
    )

    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: new_id("swp"))
    name: Mapped[str]
    base_recipe_id: Mapped[str] = mapped_column(ForeignKey("recipes.id"))
    design: Mapped[dict[str, Any]]
    plan_hash: Mapped[str]
    policy: Mapped[str] = mapped_column(default="advise")
    budget_compute: Mapped[float | None]  # that its runs share, where the policy allocates it
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    archived_at: Mapped[datetime | None]  # put away by a person, see archive.py


class SweepComparison(Base):
    """The arms of a sweep against its control, as last compared; made anew in the background when a forecast changes.

    `dirty_at` marks forecasts that the comparison has not seen, as a run's own does for evaluations.
    """

    __tablename__ = "comparisons"

    sweep_id: Mapped[str] = mapped_column(ForeignKey("sweeps.id"), primary_key=True)
    dirty_at: Mapped[datetime | None]
    not_before: Mapped[datetime | None]  # it rests in proportion to what it took
    lease: Mapped[str | None]
    lease_expires_at: Mapped[datetime | None]
    compared_at: Mapped[datetime | None]
    seconds: Mapped[float | None]
    result: Mapped[dict[str, Any] | None]  # science.Comparison.to_dict(); null while nothing can be compared
    note: Mapped[str | None]  # why there is no result
    allocation: Mapped[dict[str, Any] | None]  # what was last allocated, see allocation.py
    tries: Mapped[int] = mapped_column(default=0, server_default="0")  # unexpected failures with the same forecasts
    again_at: Mapped[datetime | None]  # when they are tried again
