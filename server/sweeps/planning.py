"""What a sweep would be: its runs, their recipes, what they may spend."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from forecurve.recipes import (
    Grid,
    LeaveOneOut,
    OneFactor,
    PlannedRun,
    Recipe,
    RecipeError,
    load_design,
    plan_hash,
    planned_runs,
)
from server.recipes.service import needed, resolve
from server.runs.room import Room

from .schemas import ComputeTotal, PlannedArm, SweepPlan, SweepPlanRequest


@dataclass(frozen=True)
class Plan:
    """A sweep before it exists."""

    name: str
    base: Recipe
    design: LeaveOneOut | OneFactor | Grid
    runs: list[PlannedRun]
    hash: str

    @property
    def compute(self) -> ComputeTotal:
        total = sum(run.recipe.budget.compute for run in self.runs)
        return ComputeTotal(total=total, unit=self.runs[0].recipe.budget.unit)

    def view(self, shared: float | None) -> SweepPlan:
        """As it is told; `shared` is the budget that the runs would share."""
        first = self.runs[0].seed  # every arm once; its other seeds have the same changes
        arms = [
            PlannedArm(name=run.arm, changes=run.changes, is_control=run.is_control, recipe_digest=run.recipe.digest)
            for run in self.runs
            if run.seed == first
        ]
        told = {"arms": arms, "runs": len(self.runs), "compute": self.compute, "plan_hash": self.hash}
        return SweepPlan(**told, budget_compute=shared)


def make_plan(session: Session, body: SweepPlanRequest, room: Room) -> Plan:
    """Plan a sweep. Stores nothing.

    Raises:
        RecipeError: the recipe or the design does not hold, its arms count compute in different units, or the cluster
            has no room for one of them.
        Invalid, NotFound: see `server.recipes.service.resolve`.
    """
    base = needed(resolve(session, body))
    design = load_design(body.design)
    runs = planned_runs(base, design)
    units = sorted({run.recipe.budget.unit for run in runs})
    if len(units) > 1:
        message = f"the arms would count compute in {' and '.join(units)}, and no curve could be compared"
        raise RecipeError.one("design", "budget.unit", message)
    for run in runs:
        room.check(run.recipe)
    return Plan(body.name or base.name, base, design, runs, plan_hash(base, design))
