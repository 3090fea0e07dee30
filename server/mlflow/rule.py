"""Which of the numbers of a run are its curve: what tags `forecurve.*` say, of the run or of its experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from forecurve.importers.units import refuse_clock, unit_named
from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE, ComputeUnit
from forecurve.recipes import SECONDS_PER_UNIT, Name
from forecurve.recipes.wording import in_words
from forecurve.reports import MAX_PROMPTS, MAX_SAMPLES
from server.errors import Invalid
from server.metrics.schemas import MetricName

PREFIX = "forecurve."
RUNTIME = "_runtime"
"""As `forecurve.compute`: seconds since the run began, by the clock of who reports."""
UNITS = (*SECONDS_PER_UNIT, "steps")
_Kind = TypeVar("_Kind", bound="Said")


def _two(value: Any) -> Any:
    return value.split(",") if isinstance(value, str) else value


def _rises(bounds: tuple[float, float]) -> tuple[float, float]:
    if not bounds[0] < bounds[1] or not math.isfinite(bounds[1] - bounds[0]):
        raise ValueError("must be the least and the greatest reward, as in 0,100")
    return bounds


def _is_no_date(name: str) -> str:
    refuse_clock(name)
    return name


class Said(BaseModel):
    """What tags say one by one, as they may be set. The fields are the options of `forecurve run follow`, and mean the
    same."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: MetricName | None = None
    compute: Annotated[MetricName, AfterValidator(_is_no_date)] | None = None
    per_step: Annotated[float, Field(ge=LEAST_COMPUTE, le=MOST_COMPUTE, allow_inf_nan=False)] | None = None
    unit: ComputeUnit | None = None
    budget: Annotated[float, Field(ge=LEAST_COMPUTE, le=MOST_COMPUTE, allow_inf_nan=False)] | None = None
    range: Annotated[tuple[float, float], BeforeValidator(_two), AfterValidator(_rises)] = (0.0, 1.0)
    prompts: Annotated[int, Field(ge=1, le=MAX_PROMPTS)] | None = None
    samples: Annotated[int, Field(ge=1, le=MAX_SAMPLES)] | None = None
    task: Name | None = None
    arm: Name | None = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None


class Rule(Said):
    """What becomes of a run's numbers: what its tags say together."""

    @model_validator(mode="after")
    def _holds(self) -> Self:
        if self.metric is not None and self.metric == self.compute:
            raise ValueError("`forecurve.compute` must be another number than `forecurve.metric`")
        if self.unit is None and self._counts_in() not in UNITS:
            raise ValueError(f"`forecurve.unit` must say in what compute is counted: {', '.join(UNITS)}")
        return self

    def _counts_in(self) -> str:
        if self.per_step is not None:
            return ""  # the price of a step or a second may be in anything
        return "steps" if self.compute is None else unit_named(self.compute)

    @property
    def counts_in(self) -> str:
        """The unit of the run's compute."""
        return self.unit or self._counts_in()

    @property
    def is_by_number(self) -> bool:
        """Whether a number that is logged counts the compute."""
        return self.compute not in (None, RUNTIME)

    @property
    def price(self) -> float:
        """Compute of one step, or of one unit of what counts it."""
        return self.per_step or 1.0

    def share(self, reward: float) -> float:
        """The reward as a pass rate from 0 to 1."""
        low, high = self.range
        return (reward - low) / (high - low)


def said_of(tags: Mapping[str, Any]) -> Said:
    """What tags say, of which others may be missing yet.

    Raises:
        Invalid: a tag `forecurve.*` is unknown or does not hold; names it.
    """
    return _parsed(Said, tags)


def rule_of(*tags: Mapping[str, Any]) -> Rule:
    """The rule that tags say together; what stands in later ones goes before.

    Raises:
        Invalid: as `said_of`, or they do not hold beside one another.
    """
    return _parsed(Rule, {name: value for some in tags for name, value in some.items()})


def _parsed(kind: type[_Kind], tags: Mapping[str, Any]) -> _Kind:
    said = {name.removeprefix(PREFIX): value for name, value in tags.items() if name.startswith(PREFIX)}
    try:
        return kind(**said)
    except ValidationError as error:
        faults = [_fault(dict(item)) for item in error.errors()]
        raise Invalid("; ".join(f"{one['field']}: {one['message']}" for one in faults), errors=faults) from None


def _fault(item: dict[str, Any]) -> dict[str, Any]:
    if not item["loc"]:
        return {"field": "tags", "value": None, "message": item["msg"].removeprefix("Value error, ")}
    field = f"{PREFIX}{item['loc'][0]}"
    message = in_words(item["type"], item.get("ctx", {}), item["msg"].removeprefix("Value error, "), item["input"])
    if item["type"] == "extra_forbidden":
        message = f"no such tag; there are {', '.join(PREFIX + name for name in Rule.model_fields)}"
    return {"field": field, "value": item.get("input"), "message": message}
