"""Of a body with very many faults, the first. pydantic finds a million in half a second, and reports them in ten."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import cache
from itertools import islice
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

MANY = 1000
"""Up to so many are reported as they are."""
_FIRST = 100
"""Else those in so many items of each list, and so many unknown names of each mapping."""
_DEPTH = 5
"""Levels of a body that are shortened: as deep as the models lie in one another."""


def first_errors(
    error: ValidationError, model: type[BaseModel], body: Any, validate: Callable[[Any], object]
) -> list[ErrorDetails]:
    """pydantic's report; of more than `MANY` faults those near the beginning of the body's lists and mappings, which
    may be none of them.

    Args:
        validate: what has raised the error when it was given `body`.
    """
    if error.error_count() <= MANY:
        return error.errors(include_url=False)
    try:
        validate(_beginning(body, _names(model), _DEPTH))
    except ValidationError as found:
        return found.errors(include_url=False)
    return []


def _beginning(value: Any, names: Container[str], depth: int) -> Any:
    """The body with short lists and mappings; what a model knows is not left out, or it would be missing."""
    if depth and isinstance(value, list):
        return [_beginning(item, names, depth - 1) for item in value[:_FIRST]]
    if depth and isinstance(value, dict):
        return {name: _beginning(value[name], names, depth - 1) for name in _first_names(value, names)}
    return value


def _first_names(value: dict[Any, Any], names: Container[str]) -> Iterator[Any]:
    yield from (name for name in value if name in names)
    yield from islice((name for name in value if name not in names), _FIRST)


@cache
def _names(model: type[BaseModel]) -> frozenset[str]:
    """Of all fields of the model and of those in it."""
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return frozenset(name for part in parts for name in part.get("properties", ()))
