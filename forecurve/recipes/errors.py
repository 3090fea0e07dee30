"""Errors of the recipes room. Each names the field, the value and the way out."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError


class RecipeError(ValueError):
    """A recipe or a sweep design that cannot be used.

    Attributes:
        problems: one entry per fault, each with `field` (dotted path), `value` and `message`.
    """

    def __init__(self, problems: list[dict[str, Any]]):
        self.problems = problems
        super().__init__("; ".join(f"{p['field']}: {p['message']}" for p in problems))

    @classmethod
    def one(cls, field: str, value: Any, message: str) -> RecipeError:
        """An error with a single fault."""
        return cls([{"field": field, "value": value, "message": message}])


def from_validation(error: ValidationError, known: dict[str, list[str]]) -> RecipeError:
    """Turn pydantic's report into ours. `known` maps a dotted section path to its field names, for suggestions."""
    return RecipeError([_problem(dict(item), known) for item in error.errors()])


def _problem(item: dict[str, Any], known: dict[str, list[str]]) -> dict[str, Any]:
    path = [str(part) for part in item["loc"]]
    message = item["msg"].removeprefix("Value error, ")
    value = item.get("input")
    if item["type"] == "extra_forbidden":
        names = known.get(".".join(path[:-1]), [])
        message = "unknown field" + suggestion(path[-1], names)
    elif isinstance(value, dict):  # a whole section: its own text already names the values
        value = None
    return {"field": ".".join(path) or "recipe", "value": value, "message": message}


def suggestion(name: str, names: list[str]) -> str:
    """`; did you mean ...?` for a near miss, else the list of what exists."""
    close = get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; known here: {', '.join(sorted(names))}" if names else ""
