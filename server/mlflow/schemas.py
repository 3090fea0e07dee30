"""What MLflow's REST API takes, as far as reporting a run needs it. What its other versions send besides is ignored.

Source: MLflow's REST API, version 2.0 (`/api/2.0/mlflow`).
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from forecurve.reports import NAMES

LONGEST_KEY = 250
LONGEST_VALUE = 8_000
MOST_NUMBERS = 1_000
"""Metrics in one batch, as MLflow has it."""

Text = Annotated[str, Field(max_length=LONGEST_VALUE)]
Key = Annotated[str, Field(min_length=1, max_length=LONGEST_KEY)]
Milliseconds = Annotated[int, Field(ge=-(2**63), lt=2**63)]


def _number(value: Any) -> Any:
    return NAMES.get(value, value) if isinstance(value, str) else value


class Taken(BaseModel):
    """The base of bodies: fields of other versions are no fault."""

    model_config = ConfigDict(extra="ignore")


class Tag(Taken):
    key: Key
    value: Text = ""


class Number(Taken):
    """A number that was logged. `step` is 0 where none was given."""

    key: Annotated[str, Field(max_length=LONGEST_VALUE)]
    value: Annotated[float, BeforeValidator(_number)]
    timestamp: Milliseconds = 0
    step: Milliseconds = 0


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
    start_time: Milliseconds | None = None
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
    end_time: Milliseconds | None = None
    run_name: Text | None = None


class NumberOfRun(Number, OfRun):
    pass


class TagOfRun(Tag, OfRun):
    pass


class Batch(OfRun):
    metrics: list[Number] = Field([], max_length=MOST_NUMBERS)
    params: list[Tag] = Field([], max_length=100)
    tags: list[Tag] = Field([], max_length=100)
