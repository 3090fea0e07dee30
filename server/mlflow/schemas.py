"""What MLflow's REST API takes, as far as reporting a run needs it. What its other versions send besides is ignored.

Source: MLflow's REST API, version 2.0 (`/api/2.0/mlflow`).
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from forecurve.client.values import plain
from server.metrics.schemas import from_name

LONGEST_KEY = 250
LONGEST_VALUE = 8_000
MOST_NUMBERS = 1_000
"""Metrics in one batch, as MLflow has it."""

Text = Annotated[str, AfterValidator(lambda text: plain(text)[:LONGEST_VALUE])]
"""What is longer is cut, as MLflow does, and what cannot be stored is `?`: it is for people, and an error would be
raised into a training."""
Key = Annotated[str, Field(min_length=1, max_length=LONGEST_KEY), AfterValidator(plain)]


def _number(value: Any) -> Any:
    try:
        return float(from_name(value))
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return value


class Taken(BaseModel):
    """The base of bodies: fields of other versions are no fault, and what is null is not there."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, body: Any) -> Any:
        return {name: value for name, value in body.items() if value is not None} if isinstance(body, dict) else body


class Tag(Taken):
    key: Key
    value: Text = ""


class Number(Taken):
    """A number that was logged. `step` is 0 where none was given."""

    key: Annotated[str, AfterValidator(plain)]
    value: Annotated[float, BeforeValidator(_number)] = 0.0
    timestamp: int = 0
    step: int = 0


class ExperimentCreate(Taken):
    name: Annotated[str, Field(min_length=1, max_length=500)]
    artifact_location: Text | None = None
    tags: list[Tag] = Field([], max_length=100)


class ExperimentTag(Tag):
    experiment_id: str


class RunCreate(Taken):
    experiment_id: str = ""
    user_id: Text | None = None
    run_name: Text | None = None
    start_time: int | None = None
    tags: list[Tag] = Field([], max_length=1_000)


class OfRun(Taken):
    """`run_uuid` is what clients before 1.0 called it; newer ones send both."""

    run_id: str = ""
    run_uuid: str = ""

    @property
    def run(self) -> str:
        return self.run_id or self.run_uuid


class RunUpdate(OfRun):
    status: str | None = None
    end_time: int | None = None
    run_name: Text | None = None


class NumberOfRun(Number, OfRun):
    pass


class TagOfRun(Tag, OfRun):
    pass


class Batch(OfRun):
    metrics: list[Number] = Field([], max_length=MOST_NUMBERS)
    params: list[Tag] = Field([], max_length=100)
    tags: list[Tag] = Field([], max_length=100)
