"""What the metrics room takes and gives over HTTP."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from server.runs.schemas import Report

NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""How numbers that are not finite are written, since JSON has none."""

MAX_STEP = 2**31 - 1
MAX_SAMPLES = 2**15 - 1


def _from_name(value: Any) -> Any:
    return NAMES.get(value, value) if isinstance(value, str) else value


def _to_name(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


Number = Annotated[
    float,
    Field(strict=True),
    BeforeValidator(_from_name, json_schema_input_type=float | Literal["NaN", "Infinity", "-Infinity"]),
    PlainSerializer(_to_name, return_type=float | Literal["NaN", "Infinity", "-Infinity"], when_used="json"),
]
"""A number that may be `"NaN"`, `"Infinity"` or `"-Infinity"`."""

MetricName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Step = Annotated[int, Field(ge=0, le=MAX_STEP, strict=True)]


class Point(BaseModel):
    """One value of one metric at one step."""

    model_config = ConfigDict(extra="forbid")

    metric: MetricName
    step: Step
    compute: Number | None = Field(None, description="Training compute so far, in the run's unit.")
    value: Number
    time: datetime | None = None


class EvaluationIn(BaseModel):
    """The pass rate on the held-out prompts at one step: `counts`, or `reward`, or both."""

    model_config = ConfigDict(extra="forbid")

    step: Step
    compute: Number = Field(
        description="Training compute so far, in the run's unit; never less than at an earlier step."
    )
    reward: Number | None = Field(None, description="Pass rate, 0 to 1.")
    prompts: int | None = Field(None, ge=1, le=1_000_000, strict=True)
    samples: int | None = Field(None, ge=1, le=MAX_SAMPLES, strict=True, description="Generations per prompt.")
    counts: list[Annotated[int, Field(strict=True)]] | None = Field(
        None, max_length=1_000_000, description="Successes of each prompt, in an order that never changes."
    )
    details: dict[MetricName, Number] = Field({}, max_length=100, description="e.g. `response_length`")
    time: datetime | None = None


class Batch(Report):
    """A numbered batch. It is taken whole or not at all; sent again, it changes nothing."""

    seq: int = Field(ge=1, le=2**31 - 1, strict=True, description="Counts from 1 in each attempt.")
    points: list[Point] = Field([], max_length=100_000)
    evaluations: list[EvaluationIn] = Field([], max_length=10_000)


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
