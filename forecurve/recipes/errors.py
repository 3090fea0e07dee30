"""Errors of the recipes room. Each names the field, the value and the way out."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from forecurve.first_faults import first_errors

from .schema import CONFLICT, NoNumber
from .wording import in_words

MOST_FAULTS = 50
"""That are put into words: nobody reads more, and to look for what a name was meant to be takes time."""


class Known(NamedTuple):
    """What exists in a schema, for errors to name: dotted section path to its field names, and to its kinds."""

    fields: dict[str, list[str]]
    kinds: dict[str, dict[str, list[str]]] = {}
    """Section that is a union to each of its kinds to the fields of that kind."""


class RecipeError(ValueError):
    """A recipe or a sweep design that cannot be used.

    Attributes:
        problems: one entry per fault, each with `field` (dotted path), `value` and `message`.
    """

    def __init__(self, problems: list[dict[str, Any]]):
        self.problems = problems
        super().__init__("; ".join(f"{p['field']}: {p['message']}" for p in problems))

    @property
    def lines(self) -> list[str]:
        """A line for each fault: field, value, message."""
        return [f"{p['field']}{_shown(p)}: {p['message']}" for p in self.problems]

    @classmethod
    def one(cls, field: str, value: Any, message: str) -> RecipeError:
        """An error with a single fault."""
        return cls([{"field": field, "value": value, "message": message}])


def _shown(problem: dict[str, Any]) -> str:
    """The value, unless there is none or the field's name says it."""
    value = problem["value"]
    return "" if value is None or value == problem["field"] else f" = {value!r:.80}"


def from_validation(error: ValidationError, model: type[BaseModel], body: Any, known: Known) -> RecipeError:
    """Turn pydantic's report of a model's body into ours, with suggestions from what is `known`; of very many faults
    the first."""
    items = first_errors(error, model, body, model.model_validate)[:MOST_FAULTS]
    problems = [problem for item in items for problem in _problems(dict(item), known)]
    if left := error.error_count() - len(items):
        problems.append({"field": "recipe", "value": None, "message": f"has {left:,} faults more"})
    return RecipeError(problems)


def _problems(item: dict[str, Any], known: Known) -> list[dict[str, Any]]:
    path, kind = _path_and_kind([str(part) for part in item["loc"]], known)
    if item["type"] == CONFLICT:
        return [
            {"field": _joined(path, conflict.field), "value": conflict.value, "message": conflict.message}
            for conflict in item["ctx"]["conflicts"]
        ]
    value = item.get("input")
    message = in_words(item["type"], item.get("ctx", {}), item["msg"].removeprefix("Value error, "), value)
    if isinstance(value, NoNumber):
        value, message = value.given, "must be a number"
    elif item["type"] == "extra_forbidden":
        message = "unknown field" + _way_to_field(path, kind, known)
    elif item["type"] == "union_tag_invalid":
        kinds = list(known.kinds.get(".".join(path), ()))
        path, value = [*path, "kind"], item["ctx"]["tag"]
        message = f"must be one of {', '.join(kinds)}" + suggestion(str(value), kinds, otherwise_all=False)
    elif isinstance(value, dict):  # a whole section: its own text already names the values
        value = None
    elif value is None:
        message += ", and nothing was given"
    return [{"field": _joined(path) or "recipe", "value": value, "message": message}]


def _path_and_kind(path: list[str], known: Known) -> tuple[list[str], str | None]:
    """The path as a person writes it, and the kind that pydantic put in behind a union's name."""
    for end in range(1, len(path)):
        if path[end] in known.kinds.get(".".join(path[:end]), ()):
            return path[:end] + path[end + 1 :], path[end]
    return path, None


def _way_to_field(path: list[str], kind: str | None, known: Known) -> str:
    section, name = ".".join(path[:-1]), path[-1]
    kinds = known.kinds.get(section, {})
    owners = [other for other, names in kinds.items() if other != kind and name in names]
    if kind and owners:
        return f" of kind {kind}; it belongs to kind {owners[0]}, chosen by `{section}.kind`"
    return suggestion(name, kinds[kind] if kind else known.fields.get(section, []))


def _joined(path: list[str], *more: str) -> str:
    return ".".join([*path, *more])


def suggestion(name: str, names: list[str], *, otherwise_all: bool = True) -> str:
    """`; did you mean ...?` for a near miss, else the list of what exists."""
    close = _abbreviated(name, names) or get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; known here: {', '.join(sorted(names))}" if names and otherwise_all else ""


def _abbreviated(name: str, names: list[str]) -> list[str]:
    """Those that `name` is short for: `lr` or `learn` for `learning_rate`; those of the same section first."""
    section, _, short = name.rpartition(".")
    found = [known for known in names if _is_short_for(short, known.rpartition(".")[2])]
    return sorted(found, key=lambda known: known.rpartition(".")[0] != section)


def _is_short_for(short: str, name: str) -> bool:
    initials = "".join(word[:1] for word in name.split("_"))
    return len(short) > 1 and (short == initials or name.startswith(short))
