"""Dotted field paths into a recipe: `algorithm.loss`, `optimizer.learning_rate`."""

from __future__ import annotations

import copy
from typing import Any

from pydantic import ValidationError

from .errors import RecipeError, from_validation, suggestion
from .schema import Recipe, Section


def section_fields(model: type[Section] = Recipe, prefix: str = "") -> dict[str, list[str]]:
    """Every section's dotted path ("" for the recipe itself) with the names of its fields."""
    fields = {prefix: list(model.model_fields)}
    for name, info in model.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            fields |= section_fields(kind, f"{prefix}.{name}" if prefix else name)
    return fields


def leaf_paths() -> list[str]:
    """Every field that can be set or swept, as a dotted path."""
    sections = section_fields()
    joined = (f"{section}.{name}" if section else name for section, names in sections.items() for name in names)
    return [path for path in joined if path not in sections]


def load_recipe(body: Any) -> Recipe:
    """Validate a plain mapping.

    Raises:
        RecipeError: an unknown key, a wrong type or a value out of range; all faults at once.
    """
    if not isinstance(body, dict):
        raise RecipeError.one(
            "recipe", type(body).__name__, "a recipe is a mapping of sections; see `forecurve recipe show scalerl`"
        )
    try:
        return Recipe.model_validate(body)
    except ValidationError as error:
        raise from_validation(error, section_fields()) from None


def with_changes(recipe: Recipe, changes: dict[str, Any]) -> Recipe:
    """A copy of `recipe` with dotted fields replaced, validated again.

    Raises:
        RecipeError: a path that names no field, or a value the field does not take.
    """
    body = copy.deepcopy(recipe.to_dict())
    for path, value in changes.items():
        check_path(path)
        target = body
        *parents, leaf = path.split(".")
        for part in parents:
            target = target[part]
        target[leaf] = value
    return load_recipe(body)


def get_value(recipe: Recipe, path: str) -> Any:
    """The value at a dotted path, as JSON types."""
    check_path(path)
    value: Any = recipe.to_dict()
    for part in path.split("."):
        value = value[part]
    return value


def check_path(path: str) -> None:
    """Raise RecipeError unless `path` names a field that can be set."""
    leaves = leaf_paths()
    if path in leaves:
        return
    if path in section_fields():
        raise RecipeError.one(path, path, f"is a section, not a field; its fields: {', '.join(section_fields()[path])}")
    by_last_name = [leaf for leaf in leaves if leaf.rsplit(".", 1)[-1] == path.rsplit(".", 1)[-1]]
    hint = f"; did you mean `{by_last_name[0]}`?" if by_last_name else suggestion(path, leaves)
    raise RecipeError.one(path, path, f"no such field in a recipe{hint}")


def diff(control: Recipe, other: Recipe) -> dict[str, tuple[Any, Any]]:
    """Fields in which two recipes differ: dotted path to (control's, other's) value. The name is no difference."""
    pairs = ((path, get_value(control, path), get_value(other, path)) for path in leaf_paths() if path != "name")
    return {path: (ours, theirs) for path, ours, theirs in pairs if ours != theirs}
