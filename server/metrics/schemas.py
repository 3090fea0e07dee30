"""What the metrics room takes and gives over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from forecurve.limits import EARLIEST, LATEST, MAX_STEP, ComputeUnit
from forecurve.recipes import Name
from forecurve.reports import (
    MAX_DETAILS,
    MAX_NAME,
    MAX_PROMPTS,
    MAX_SAMPLES,
    NAME_PATTERN,
    NAMES,
    as_json_number,
)
from server.labels.schemas import Labelled
from server.runs.schemas import Arm, Budget, LateReport, RunCreate, RunView, Seed, Task


def from_name(value: Any) -> Any:
    """The number that a name says, `"NaN"` for one; all else as it is."""
    return NAMES.get(value, value) if isinstance(value, str) else value


Number = Annotated[
    float,
    Field(strict=True),
    AfterValidator(lambda value: value + 0.0),  # of -0.0, too, it makes 0.0: a rate of "-0.00" is none
    BeforeValidator(from_name, json_schema_input_type=float | Literal["NaN", "Infinity", "-Infinity"]),
    PlainSerializer(as_json_number, return_type=float | Literal["NaN", "Infinity", "-Infinity"], when_used="json"),
]
"""A number that may be `"NaN"`, `"Infinity"` or `"-Infinity"`."""

MetricName = Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=NAME_PATTERN)]


def _is_possible(time: datetime) -> datetime:
    if time.tzinfo is None:
        raise ValueError("a zone is needed, as in 2026-01-31T12:00:00Z")
    if not EARLIEST <= time < LATEST:
        message = f"must be from {EARLIEST:%Y-%m-%d} to before {LATEST:%Y-%m-%d}; set the clock, or leave it out"
        raise ValueError(message)
    return time


Time = Annotated[datetime, AfterValidator(_is_possible), Field(description="With a zone; that of arrival by default.")]
Step = Annotated[int, Field(ge=0, le=MAX_STEP, strict=True)]


class Point(BaseModel):
    """One value of one metric at one step."""

    model_config = ConfigDict(extra="forbid")

    metric: MetricName
    step: Step
    compute: Number | None = Field(None, description="Training compute so far, in the run's unit.")
    value: Number
    time: Time | None = None


class EvaluationIn(BaseModel):
    """The pass rate on the held-out prompts at one step: `counts`, or `reward`, or both."""

    model_config = ConfigDict(extra="forbid")

    step: Step
    compute: Number = Field(
        description="Training compute so far, in the run's unit; never less than at an earlier step."
    )
    reward: Number | None = Field(None, description="Pass rate, 0 to 1.")
    prompts: int | None = Field(None, ge=1, le=MAX_PROMPTS, strict=True)
    samples: int | None = Field(None, ge=1, le=MAX_SAMPLES, strict=True, description="Generations per prompt.")
    counts: list[Annotated[int, Field(strict=True)]] | None = Field(
        None, max_length=MAX_PROMPTS, description="Successes of each prompt, in an order that never changes."
    )
    details: dict[MetricName, Number] = Field({}, max_length=MAX_DETAILS, description="e.g. `response_length`")
    time: Time | None = None


MOST_EVALUATIONS = 10_000


class Batch(LateReport):
    """A numbered batch. It is taken whole or not at all; sent again, it changes nothing."""

    seq: int = Field(ge=1, le=2**31 - 1, strict=True, description="Counts from 1 in each attempt.")
    points: list[Point] = Field([], max_length=100_000)
    evaluations: list[EvaluationIn] = Field([], max_length=MOST_EVALUATIONS)


class RunImport(Labelled):
    """A run that is over elsewhere, with its whole validation curve. It becomes a succeeded run of its own."""

    name: Name
    compute_unit: ComputeUnit
    budget_compute: Budget | None = Field(None, description="In the unit; by default what the run has spent.")
    task: Task | None = None
    arm: Arm | None = None
    seed: Seed | None = None
    evaluations: list[EvaluationIn] = Field(min_length=1, max_length=MOST_EVALUATIONS)

    def as_new(self) -> RunCreate:
        """The run as it would have begun."""
        budget = self.budget_compute or max(one.compute for one in self.evaluations) or None
        told = self.model_dump(exclude={"evaluations", "budget_compute"})
        return RunCreate(executor="external", budget_compute=budget, **told)


class RunImported(RunView):
    """The run. `was_there`: the very same one had come in before, or was reported here, and nothing was changed; or one
    that had come in with the first of these evaluations, which has all of them now."""

    was_there: bool
    added: int = Field(description="Evaluations that are new: of a new run all; 0 where nothing was changed.")


class BatchAnswer(BaseModel):
    seq: int
    accepted: int = Field(description="Points and evaluations that are new.")
    duplicate: bool = Field(description="The batch was taken before; nothing was changed now.")


class MetricNames(BaseModel):
    metrics: list[str]


class PointRead(BaseModel):
    step: int
    attempt: int
    compute: float | None
    value: Number
    time: datetime


class MetricSeries(BaseModel):
    metric: str
    points: list[PointRead]
    next_step: int | None = Field(description="The `since_step` of the next page; null at the end.")


class Bucket(BaseModel):
    """Neighbouring points as one: where the last of them lies, and their finite values; null where there is none."""

    step: int
    compute: float | None
    mean: float | None
    least: float | None
    greatest: float | None


class ThinnedSeries(BaseModel):
    metric: str
    points: int = Field(description="Of the whole series.")
    not_finite: int = Field(description="How many of them are NaN or infinite.")
    buckets: list[Bucket]


class ThinnedMetrics(BaseModel):
    unit: str
    items: list[ThinnedSeries]


class RunSeries(ThinnedSeries):
    run_id: str


class RunsMetrics(BaseModel):
    """Metrics of several runs; `unit` is null when they are not in one unit."""

    unit: str | None
    metrics: list[str] = Field(description="Names of all that one of them has logged.")
    items: list[RunSeries] = Field(description="Of the metrics asked for, run by run; none where a run has no points.")


class EvaluationRead(BaseModel):
    step: int
    attempt: int
    compute: float
    reward: float
    prompts: int | None
    samples: int | None
    se: float | None = Field(description="Standard error of `reward` from its samples.")
    details: dict[str, Any]
    time: datetime


class EvaluationsRead(BaseModel):
    """The validation curve: the newest attempt at each step."""

    unit: str
    items: list[EvaluationRead]
