"""Table of recipes: immutable, one row per resolved content and name."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column

from server.database import Base, new_id


class RecipeRow(Base):
    __tablename__ = "recipes"
    __table_args__ = (
        UniqueConstraint("digest", "name"),
        Index("ix_recipes_task", text("(body['task'])"), postgresql_using="hash"),
    )

    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: new_id("rec"))
    name: Mapped[str]
    digest: Mapped[str]
    body: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
