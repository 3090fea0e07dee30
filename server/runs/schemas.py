"""What the runs room takes and gives over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from forecurve.limits import LEAST_COMPUTE, MAX_STEP, MOST_COMPUTE, ComputeUnit
from forecurve.recipes import Name
from server.bodies import Body
from server.labels.schemas import LabelChange, Labelled
from server.recipes.schemas import RecipeChoice


class Interval(BaseModel):
    """A posterior summary: the median and the 90 % interval."""

    median: float
    lower: float
    upper: float

    @classmethod
    def of(cls, said: Mapping[str, Any] | None) -> Self | None:
        """As a forecast's summary has it, with more; None where it has none."""
        return cls(median=said["median"], lower=said["lower"], upper=said["upper"]) if said else None


class Ending(Interval):
    """How the run will end: the mean of its last 10 % of evaluations at the budget, median and 90 % interval."""

    compute: float = Field(description="The budget.")
    calibration: str = Field(
        description="What the interval rests on: `without past runs`; `with n past runs`, as its prior, too few of "
        "whose forecasts tell; `adjusted by n past runs` (3 to 8); `calibrated on n past runs`."
    )


class AdviceView(BaseModel):
    action: Literal["stop", "continue", "scale", "undecided"]
    reason: str


class Progress(BaseModel):
    """What the last heartbeat of the current attempt said."""

    step: int | None = None
    compute: float | None = None
    message: str | None = None
    heartbeat_at: datetime | None = None


class Parent(BaseModel):
    """Where a fork began: a checkpoint of another run."""

    run_id: str
    checkpoint_id: str
    step: int


class RunView(BaseModel):
    """A run with what is known of its curve: the newest evaluation, the newest forecast, the alerts that are open."""

    id: str
    name: str
    sweep_id: str | None
    task: str | None = Field(description="What a run without a recipe said it is of; with one the recipe says it.")
    arm: str | None
    parent: Parent | None = Field(description="Of a fork; null for a run that began at step 0.")
    changes: dict[str, Any] = Field(
        description="Dotted field to value, against the sweep's base recipe; of a fork, against its parent's."
    )
    is_control: bool
    seed: int | None
    tags: list[str]
    note: str | None
    executor: Literal["ray", "external"]
    recipe_id: str | None
    status: str
    desired_state: Literal["run", "pause", "stop", "cancel"]
    reason: str | None = Field(description="Why the status is what it is.")
    attempt: int = Field(description="Number of the current attempt; 0 before the first launch.")
    version: int
    compute_unit: str
    budget_compute: float | None
    allocated: bool = Field(
        description="Whether its sweep, of policy `allocate`, says how far it trains; not once a person paused or "
        "resumed it. Of a run that is over: whether it did."
    )
    goes_to: float | None = Field(
        description="Compute to which that lets it train now: 0 until it can be forecast, null while it is held."
    )
    last_step: int | None
    last_compute: float | None
    last_reward: float | None
    ceiling: Interval | None = Field(description="A of the newest forecast; null where it is withheld.")
    headroom: Interval | None = Field(
        description="How far A lies above the curve now; null where it is withheld, and in older forecasts."
    )
    identified: float | None = Field(description="Share of A's precision that comes from the data, 0 to 1.")
    ceiling_known: bool = Field(
        description="The ceiling is worth saying: identified by the run's own data, or known narrowly by past runs."
    )
    misfit: str | None = Field(description="Why the curve is not the sigmoid that the forecast assumes.")
    withheld: bool = Field(description="The misfit forbids a forecast: no ceiling, and nothing beyond the data.")
    at_budget: Interval | None = Field(description="The curve at the budget, by the newest forecast.")
    ending: Ending | None = Field(
        description="How it will end; null without a budget, where it is withheld, or once the run is over."
    )
    advice: AdviceView | None = Field(
        description="What to do; of a run that is over, nothing but `scale`, by a fork, unless its sweep stopped it."
    )
    sentence: str
    open_alerts: int
    fell_at: float | None = Field(
        description="Of a run that is over: from which compute on it was below its forecast, by an alert that no "
        "person had resolved when it ended; null where there is none, or it was back within its forecast by then."
    )
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    updated_at: datetime
    archived_at: datetime | None = Field(description="When it was put away; null for a run that lists show.")
    budget_spent_at: datetime | None = Field(
        description="When a run that is running will have spent its budget, at the pace of its newest evaluations; "
        "null where that cannot be told. It may lie in the past: then it is any moment."
    )
    progress: Progress


class RunCounts(BaseModel):
    """How many runs there are."""

    statuses: dict[str, int] = Field(
        description="How many have each status, without the archived ones; statuses that no run has are left out."
    )


Budget = Annotated[float, Field(ge=LEAST_COMPUTE, le=MOST_COMPUTE, allow_inf_nan=False, strict=True)]
Task = Annotated[
    Name,
    Field(
        description="External runs without a recipe: what is trained and evaluated, in words of your own. Runs of one "
        "task and unit that are over tell how another one will end: their evaluations must mean the same."
    ),
]
Arm = Annotated[
    Name, Field(description="External runs without a recipe: what seeds of one setting share; needs task and seed.")
]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1, strict=True, description="External runs without a recipe.")]


class RunCreate(RecipeChoice, Labelled):
    """A run of its own. With executor `ray` the service launches it; with `external` you do, and report to it."""

    name: Name | None = None
    executor: Literal["ray", "external"] = "ray"
    compute_unit: ComputeUnit | None = Field(None, description="Needed for an external run without a recipe.")
    budget_compute: Budget | None = Field(None, description="External runs only, in the unit.")
    task: Task | None = None
    arm: Arm | None = None
    seed: Seed | None = None


class AttemptCreate(RecipeChoice):
    """The next attempt of an external run. What is given must be what the run has; nothing need be given."""

    compute_unit: ComputeUnit | None = None
    budget_compute: Budget | None = None
    task: Task | None = None
    arm: Arm | None = None
    seed: Seed | None = None


class RunCreated(RunView):
    """A new run, or one that goes on. `ingest_token` is for the reports of an external run and is shown this once."""

    ingest_token: str | None


class RunChange(LabelChange):
    """What of a run can be changed; what is left out stays."""

    name: Name = Field("", validate_default=False)
    task: Task | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> RunChange:
        if not self.model_fields_set:
            raise ValueError("nothing is to be changed: give `name`, `task`, `tags` or `note`")
        return self


class ForkCreate(Labelled):
    """Which checkpoint a fork begins at, and what its recipe changes against the parent's."""

    step: int | None = Field(
        None,
        ge=0,
        le=MAX_STEP,
        strict=True,
        description="Of the checkpoint; the newest when neither it nor `checkpoint_id` is given.",
    )
    checkpoint_id: str | None = None
    changes: dict[str, Any] = Field(
        {}, description="Dotted field to value. Steps and compute go on from the checkpoint, so must the budget."
    )
    name: Name | None = None


class StopRequest(Body):
    """Why, for the run's audit log."""

    reason: str | None = Field(None, max_length=1000)


class Report(Body):
    """What every report of a trainer begins with."""

    attempt: int = Field(ge=1, le=2**31 - 1, strict=True, description="Number of the attempt that reports.")


class LateReport(Report):
    """A report that may be handed in by a later attempt, which found it unsent when it began."""

    handed_in_by: int | None = Field(
        None,
        ge=2,
        le=2**31 - 1,
        strict=True,
        description="The current attempt, when it reports for `attempt`, an earlier one.",
    )

    @property
    def reporter(self) -> int:
        """The attempt that sends it, whose token it needs."""
        return self.handed_in_by or self.attempt


class Heartbeat(Report):
    """A sign of life. Cheap: send it also when there is nothing to say."""

    step: int | None = Field(None, ge=0, le=MAX_STEP, strict=True)
    compute: float | None = Field(None, ge=0, le=MOST_COMPUTE, allow_inf_nan=False, strict=True)
    message: str | None = Field(None, max_length=1000, description="What the trainer is about, for people.")


class HeartbeatAnswer(BaseModel):
    """`stop` asks the trainer to finish its step, evaluate, write a checkpoint and exit."""

    stop: bool
    reason: str | None
    interval_s: float
    server_time: datetime
    held_steps: list[int] = Field(description="Of checkpoints that forks have yet to begin from: leave them on disk.")


class Outcome(LateReport):
    """How the attempt ended, by the trainer's own word. After `lost` (a worker, its device or its machine died) a run
    that was launched here gets its next attempt; after `failed` none."""

    outcome: Literal["succeeded", "stopped", "failed", "lost"]
    reason: str | None = Field(None, max_length=4000)
    exit_code: int | None = Field(None, ge=-(2**31), le=2**31 - 1, strict=True)


class AttemptRead(BaseModel):
    """One launch of a run."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    run_id: str
    number: int
    external_ref: str | None
    observed: str | None
    observed_at: datetime | None
    unreachable_since: datetime | None
    outcome: str | None
    outcome_reason: str | None
    exit_code: int | None
    log_tail: str | None
    last_heartbeat_at: datetime | None
    progress: dict[str, Any]
    stop_requested_at: datetime | None
    stop_forced_at: datetime | None
    created_at: datetime
    submitted_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None


class RunRecipe(BaseModel):
    """The resolved recipe of a run, as its trainer reads it."""

    recipe: dict[str, Any]
    digest: str
