"""Table of checkpoints: where they lie, and the digest that proves them whole."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, UniqueConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from server.database import Base, new_id


class Checkpoint(Base):
    __tablename__ = "checkpoints"
    __table_args__ = (UniqueConstraint("run_id", "attempt", "step"),)

    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: new_id("ckp"))
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"))
    attempt: Mapped[int]
    step: Mapped[int]
    compute: Mapped[float | None]
    path: Mapped[str]
    digest: Mapped[str]  # sha256 of the manifest
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
