"""What every part of a recipe shares: unknown keys fail, values are frozen, faults between fields are all told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from forecurve.limits import MAX_STEP

CONFLICT = "recipe_conflict"
"""Type of the error that carries faults between fields; its context holds them under `conflicts`."""

Steps = Annotated[int, Field(le=MAX_STEP)]
"""A number of optimiser steps, or one of them."""


class Conflict(NamedTuple):
    """Two fields that do not go together: the field to change (relative to its section), its value, the way out."""

    field: str
    value: Any
    message: str


class Section(BaseModel):
    """Base of every part of a recipe: unknown keys fail, values never change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def conflicts(self) -> Iterator[Conflict]:
        """Faults between fields that are each valid alone."""
        yield from ()

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        found = list(self.conflicts())
        if found:
            text = "; ".join(f"{conflict.field}: {conflict.message}" for conflict in found)
            # braces in the text would be read as a template
            raise PydanticCustomError(CONFLICT, "{text}", {"text": text, "conflicts": found})
        return self
