"""Table of sweeps: a base recipe and the design that varies it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, func
from sqlalchemy.orm import Mapped, mapped_column

from server.database import Base, new_id


class Sweep(Base):
    __tablename__ = "sweeps"
    __table_args__ = (CheckConstraint("policy IN ('advise', 'auto')", name="policy"),)

    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: new_id("swp"))
    name: Mapped[str]
    base_recipe_id: Mapped[str] = mapped_column(ForeignKey("recipes.id"))
    design: Mapped[dict[str, Any]]
    plan_hash: Mapped[str]
    policy: Mapped[str] = mapped_column(default="advise")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
