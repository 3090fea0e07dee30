"""What the sweeps room takes and gives over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from server.recipes.schemas import RecipeChoice
from server.runs.schemas import RunView


class SweepPlanRequest(RecipeChoice):
    """A base recipe and the design that varies it."""

    name: str | None = Field(None, min_length=1, max_length=200)
    design: dict[str, Any] = Field(description="`{kind: leave_one_out | one_factor | grid, ...}`")


class SweepCreate(SweepPlanRequest):
    plan_hash: str | None = Field(None, description="Of the plan that was looked at; another plan is refused with 409.")
    policy: Literal["advise", "auto"] = Field("advise", description="`auto` acts on the advice to stop.")


class PlannedArm(BaseModel):
    name: str
    changes: dict[str, Any]
    is_control: bool
    recipe_digest: str


class ComputeTotal(BaseModel):
    total: float
    unit: str


class SweepPlan(BaseModel):
    """What a submission would create."""

    arms: list[PlannedArm]
    runs: int
    compute: ComputeTotal = Field(description="The sum of the runs' budgets.")
    plan_hash: str


class SweepSummary(BaseModel):
    """A sweep in a list."""

    id: str
    name: str
    base_recipe_id: str
    design: dict[str, Any]
    plan_hash: str
    policy: Literal["advise", "auto"]
    created_at: datetime
    statuses: dict[str, int] = Field(description="How many of its runs have each status.")


class SweepRead(SweepSummary):
    """One sweep with its runs, control first."""

    sentence: str
    runs: list[RunView]
