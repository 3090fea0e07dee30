"""What the logs room gives over HTTP."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field


class LogRead(BaseModel):
    """Lines that an attempt's job printed, oldest first. Lines are counted from 0."""

    run_id: str
    attempt: int = Field(description="0 where the run was not launched yet.")
    attempts: int = Field(description="How many there are by now.")
    first: int = Field(description="The number of the first of `lines`.")
    lines: list[str]
    unfinished: str = Field(description="What came after the last line by now, and may change: a progress bar, say.")
    next: int = Field(description="The number of the line after them: give it as `after` to go on.")
    kept: int = Field(description="The number of the oldest line that is kept.")
    whole: bool = Field(description="Whether nothing will come any more.")
    read_at: datetime | None = Field(description="When the cluster was last asked; null before the first time.")
