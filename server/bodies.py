"""What every body of a request shares."""

from __future__ import annotations

from typing import Any, Self

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator

from forecurve.first_faults import MANY, first_errors


class Body(BaseModel):
    """The base of bodies: unknown fields are refused, and of very many faults the first are told.

    What stands in a list of a body is none: a batch has a hundred thousand points.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _few_faults(cls, body: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(body)
        except ValidationError as error:
            if error.error_count() <= MANY:
                raise
            told = first_errors(error, cls, body, handler)
            all_of_them = {"type": "many", "loc": ("body",), "msg": _how_many(error.error_count(), told)}
            raise RequestValidationError(
                [all_of_them, *({**one, "loc": ("body", *one["loc"])} for one in told)]
            ) from None


def _how_many(count: int, told: list[Any]) -> str:
    first = "the first are named here" if told else "none of them near its beginning; send a part of it to see them"
    return f"has {count:,} faults, {first}"
