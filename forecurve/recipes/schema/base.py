"""What every part of a recipe shares: unknown keys fail, values are frozen, faults between fields are all told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NamedTuple, Self, get_args, get_origin

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


class NoNumber(NamedTuple):
    """What was given where a number is needed."""

    given: Any


class Section(BaseModel):
    """Base of every part of a recipe: unknown keys fail, values never change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def conflicts(self) -> Iterator[Conflict]:
        """Faults between fields that are each valid alone."""
        yield from ()

    @model_validator(mode="before")
    @classmethod
    def _numbers_are_numbers(cls, body: Any) -> Any:
        """`true` is not 1, and text is no number, where pydantic would make one of either. What it cannot take for one
        is told with all other faults of the section."""
        if not isinstance(body, dict):
            return body
        numeric = {name for name, field in cls.model_fields.items() if _is_number(field.annotation)}
        return {
            name: NoNumber(value) if name in numeric and isinstance(value, bool | str) else value
            for name, value in body.items()
        }

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        _refuse(self.conflicts())
        return self


def _refuse(faults: Iterable[Conflict]) -> None:
    found = list(faults)
    if found:
        text = "; ".join(f"{conflict.field}: {conflict.message}" for conflict in found)
        # braces in the text would be read as a template
        raise PydanticCustomError(CONFLICT, "{text}", {"text": text, "conflicts": found})


def _is_number(annotation: Any) -> bool:
    """Whether a field takes numbers, and nothing else but null."""
    if get_origin(annotation) is Annotated:
        return _is_number(get_args(annotation)[0])
    options = [option for option in get_args(annotation) if option is not type(None)]
    return annotation in (int, float) or (bool(options) and all(map(_is_number, options)))
