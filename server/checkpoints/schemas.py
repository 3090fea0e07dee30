"""What the checkpoints room takes and gives over HTTP."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from forecurve.limits import MAX_STEP, MOST_COMPUTE
from server.runs.schemas import LateReport


class CheckpointCreate(LateReport):
    """A checkpoint that is whole: written, flushed and renamed into place."""

    step: int = Field(ge=0, le=MAX_STEP, strict=True)
    compute: float | None = Field(
        None,
        ge=0,
        le=MOST_COMPUTE,
        allow_inf_nan=False,
        strict=True,
        description="Training compute so far, in the unit.",
    )
    path: str = Field(min_length=1, max_length=4000, description="Where it lies, as the trainer sees it.")
    digest: str = Field(pattern=r"^(sha256:)?[0-9a-f]{64}$", description="sha256 of its manifest, in hex.")
    size_bytes: int = Field(ge=0, le=2**63 - 1, strict=True)


class CheckpointRead(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: str
    run_id: str
    attempt: int
    step: int
    compute: float | None
    path: str
    digest: str
    size_bytes: int
    created_at: datetime


class CheckpointListed(CheckpointRead):
    """A checkpoint among the others of its run."""

    on_disk: bool | None = Field(
        None,
        description="Whether a fork can begin at it: its trainer keeps it, by its recipe. Null of a run that its user "
        "launched.",
    )
