"""Table of logs: the last lines that the job of an attempt printed, as the worker read them from the cluster."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from server.database import Base


class AttemptLog(Base):
    __tablename__ = "attempt_logs"

    attempt_id: Mapped[str] = mapped_column(ForeignKey("attempts.id"), primary_key=True)
    first: Mapped[int] = mapped_column(default=0)  # lines before those that are kept
    count: Mapped[int] = mapped_column(default=0)  # lines that are
    text: Mapped[str] = mapped_column(default="", deferred=True)  # one a line
    unfinished: Mapped[str] = mapped_column(default="", server_default="")  # what came after the last of them
    whole: Mapped[bool] = mapped_column(default=False)  # nothing will come any more
    read_at: Mapped[datetime | None]  # when the cluster was last asked
    took_s: Mapped[float] = mapped_column(default=0.0)  # seconds that this took
    asked_at: Mapped[datetime | None]  # when somebody last looked: then it is read more often
