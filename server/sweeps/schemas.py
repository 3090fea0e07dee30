"""What the sweeps room takes and gives over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from forecurve.recipes import MAX_RUNS, Name
from server.bodies import Body
from server.labels.schemas import LabelChange, Labelled
from server.recipes.schemas import RecipeChoice
from server.runs.schemas import Budget, Interval, RunView

Policy = Literal["advise", "auto", "allocate"]
_POLICY = (
    "`auto` acts on the advice to stop. `allocate` lets the runs share `budget_compute`: it says how far each trains, "
    "holds those that are not worth more yet, and ends the sweep once the best is known and at its end."
)
_SHARED = "With policy `allocate`: compute of all its runs together, by default the sum of their budgets."


class SweepPlanRequest(RecipeChoice, Labelled):
    """A base recipe and the design that varies it; and what a submission takes beside them, to be judged before."""

    name: Name | None = None
    design: dict[str, Any] = Field(description="`{kind: leave_one_out | one_factor | grid, ...}`")
    policy: Policy = Field("advise", description=_POLICY)
    budget_compute: Budget | None = Field(None, description=_SHARED)


class SweepCreate(SweepPlanRequest):
    plan_hash: str | None = Field(None, description="Of the plan that was looked at; another plan is refused with 409.")


class SweepChange(LabelChange):
    """What of a sweep can be changed; what is left out stays."""

    name: Name = Field("", validate_default=False)
    policy: Policy = Field("advise", description=f"{_POLICY} Runs that it held stay paused when it is taken away.")
    budget_compute: Budget | None = Field(None, description=_SHARED)

    @model_validator(mode="after")
    def _changes_something(self) -> SweepChange:
        if not self.model_fields_set:
            raise ValueError("nothing is to be changed: give `name`, `policy`, `budget_compute`, `tags` or `note`")
        return self


MOST_FURTHER = 100


class MoreSeeds(Body):
    """Further seeds of arms that a sweep has."""

    seeds: int = Field(
        ge=1, le=MOST_FURTHER, strict=True, description="How many each of the arms gets: the lowest that it lacks."
    )
    arms: list[str] | None = Field(
        None, min_length=1, max_length=MAX_RUNS, description="Which arms get them; all by default, the control too."
    )
    control_seeds: int | None = Field(
        None,
        ge=0,
        le=MOST_FURTHER,
        strict=True,
        description="How many the control gets, where that is another number.",
    )


class NewArm(Body):
    """An arm that a sweep has not: its base recipe with other changes, with every seed that the control has."""

    changes: dict[str, Any] = Field(min_length=1, description="Dotted field to value, against the sweep's base recipe.")
    name: Name | None = Field(None, description="What the arm is called; by default after its changes.")


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
    budget_compute: float | None = Field(description="What the runs would share, with policy `allocate`.")
    plan_hash: str = Field(description="Of the base recipe and the design: not of what else was sent.")


class SweepSummary(BaseModel):
    """A sweep in a list."""

    id: str
    name: str
    base_recipe_id: str
    design: dict[str, Any]
    plan_hash: str
    policy: Policy
    budget_compute: float | None = Field(description="What its runs share, with policy `allocate`.")
    tags: list[str]
    note: str | None
    created_at: datetime
    archived_at: datetime | None = Field(description="When it was put away; null for a sweep that lists show.")
    statuses: dict[str, int] = Field(description="How many of its runs have each status.")


class MultiplierView(Interval):
    """The control's compute over the arm's to reach `level`: above 1 the arm is faster."""

    level: float = Field(description="A reward that both reach.")
    certainty: float = Field(description="That it is not 1, all claims of the comparison accounted for.")


class LeftOut(BaseModel):
    """A run that has no ceiling to compare, and why."""

    series: str
    misfit: str


class FurtherSeeds(BaseModel):
    """Seeds that would decide an arm, beside those that it and the control have and that are on their way."""

    request: MoreSeeds = Field(description="What to send to `POST /v1/sweeps/{id}/seeds`.")
    runs: int = Field(description="How many runs that queues.")
    compute: float | None = Field(description="The sum of their budgets, in the sweep's unit.")


class ArmVerdictView(BaseModel):
    """What an arm changed against the control."""

    arm: str
    seeds: int = Field(description="Runs that were used.")
    left_out: list[LeftOut]
    waiting: list[str] = Field(default=[], description="Runs that are far younger than others of it, not counted yet.")
    verdict: Literal["ceiling", "efficiency", "no difference shown", "undecided"]
    direction: Literal["up", "down", "faster", "slower"] | None
    difference: Interval | None = Field(description="Of the mean ceilings, arm minus control.")
    simultaneous: tuple[float | None, float | None] | None = Field(
        description="Its bounds beside all the other claims of the comparison."
    )
    certainty: float = Field(description="That the ceilings differ by more than `rope`, all claims accounted for.")
    p_same: float | None = Field(description="Probability that they differ by less than `rope`.")
    multiplier: MultiplierView | None
    seeds_needed: int | None = Field(
        description="Seeds of it and of the control, each, that would decide; those that are there count."
    )
    run_to: float | None = Field(description="Compute to which runs with an unknown ceiling have to go.")
    would_decide: str | None = Field(description="What would decide it, in a few words; null when it is decided.")
    further: FurtherSeeds | None = Field(
        default=None,
        description="Of a sweep, how seeds would decide it; null where they would not, or are on their way.",
    )
    on_their_way: bool = Field(
        default=False, description="Of a sweep, whether seeds that would decide it are queued or not far enough yet."
    )
    seed_note: str | None
    reason: str


class RankView(BaseModel):
    """Where an arm stands among the others: the mean of its seeds at the horizon, with what few seeds leave open."""

    arm: str
    runs: int = Field(description="How many it rests on.")
    fallen: int = Field(default=0, description="How many of these fell and have not come back.")
    end: Interval
    p_best: float = Field(description="Probability that no other arm is better.")
    p_within_delta: float = Field(description="Probability that it is within a hundredth of the best.")
    dominated: bool = Field(
        description="Whether it can be dropped: that is under 5 %, and all arms that are dropped leave one within a "
        "hundredth of the highest with 95 %."
    )


class RankingView(BaseModel):
    """Which arm is best at the budget, or where the furthest run is: the likeliest first."""

    horizon: float
    arms: list[RankView]
    sentence: str


class SeedSpreadView(BaseModel):
    """How far runs of one arm lie apart that differ in their seed alone."""

    sd: float
    dof: float | None = Field(description="How many replicates' worth of knowledge stands behind it.")
    past: int = Field(default=0, description="Replicates of past sweeps among them.")


class ComparisonView(BaseModel):
    """The arms against the control. Claims of a difference are wrong with probability 1 - `level`, all together."""

    control: str
    control_seeds: int
    control_left_out: list[LeftOut]
    control_waiting: list[str] = Field(default=[], description="Its runs that are not counted yet, likewise.")
    arms: list[ArmVerdictView]
    rope: float = Field(description="Ceilings within this of one another are the same in practice.")
    level: float
    unit: str
    seed_spread: SeedSpreadView = Field(description="Of the ceiling.")
    replicates: int = Field(description="Runs beyond the first of an arm, from which that was learned here.")
    seed_note: str | None = Field(default=None, description="Both in a few words.")
    control_advice: str | None
    ranking: RankingView | None = None
    sentence: str
    compared_at: datetime
    seconds: float = Field(description="How long it took.")


class AllocatedRun(BaseModel):
    """How a run stands among those that share the compute."""

    run_id: str
    end: Interval = Field(description="Its reward at the horizon.")
    p_best: float = Field(description="Probability that it ends highest; where an arm has several seeds, its arm.")
    dominated: bool = Field(description="Whether it, or its arm, could be dropped.")
    seed_of: str | None = Field(None, description="Arm of which it is one of several seeds; null where it has none.")
    reason: str | None = Field(description="Why it trains on, as said when it was let on; null of a run that is held.")


class AllocationView(BaseModel):
    """How the compute that the runs share is allocated, as far as the last plan goes."""

    budget: float = Field(description="Of all runs together.")
    spent: float = Field(description="By their newest evaluations.")
    unit: str
    horizon: float = Field(description="Compute at which the runs are compared: the largest of their budgets.")
    choice: str | None = Field(
        description="Id of the run that is expected to end highest; where an arm of several seeds is, that of the "
        "furthest of its good runs. Null before all are known."
    )
    settled: bool = Field(
        description="Whether choosing it now is expected to lose next to nothing, as far as its runs will tell."
    )
    expected_regret: float | None = Field(
        description="What choosing it now is expected to lose, as far as its runs will tell."
    )
    over: str | None = Field(description="Why no run goes on; null while one does.")
    runs: list[AllocatedRun] = Field(description="Those that are compared, the likeliest best first.")
    sentence: str
    planned_at: datetime | None = Field(description="Null before the first plan.")


class SweepRead(SweepSummary):
    """One sweep with its runs, control first."""

    sentence: str
    through_at: datetime | None = Field(
        description="When all of its runs will have spent their budgets: at the pace of those that train, the others "
        "in the places of these. Null where nothing trains, no pace can be told yet, it would be years, or compute is "
        "allocated."
    )
    comparison: ComparisonView | None = Field(description="Null until the control and an arm have 4 evaluations.")
    allocation: AllocationView | None = Field(description="Null with another policy than `allocate`.")
    runs: list[RunView]
