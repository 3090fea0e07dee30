"""What the events room gives over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class EventRead(BaseModel):
    """Something that happened, by whom and why."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    kind: str
    run_id: str | None
    sweep_id: str | None
    actor: str = Field(
        description="A token's id, or a part of the service: `trainer`, `admission`, `launcher`, `reconciler`, "
        "`refit`, `watch`, `policy`, `compare`, `notify`, `bootstrap`."
    )
    actor_name: str | None = Field(None, description="The token's name; null where it is none, or is forgotten.")
    from_state: str | None
    to_state: str | None
    reason: str | None
    evidence: dict[str, Any]
    created_at: datetime


class EventsRead(BaseModel):
    """Events oldest first. `cursor` is the `since` of the next read, also when there was nothing new."""

    items: list[EventRead]
    cursor: int
