"""The recipes of several runs side by side: whether they are judged alike, and the fields in which they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from forecurve.recipes.paths import leaf_paths
from server.recipes.models import RecipeRow
from server.runs.models import Run

from .schemas import FieldDifference

Recipes = Mapping[str, Mapping[str, Any]]
_NO_DIFFERENCE = ("name",)
_ABSENT = object()


def recipes_of(session: Session, runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """The resolved recipes by run, without the runs that have none."""
    ids = {run.recipe_id for run in runs if run.recipe_id}
    rows = session.execute(select(RecipeRow.id, RecipeRow.body).where(RecipeRow.id.in_(ids)))
    bodies = {row.id: row.body for row in rows}
    return {run.id: bodies[run.recipe_id] for run in runs if run.recipe_id}


def differences(runs: Sequence[Run], recipes: Recipes) -> list[FieldDifference]:
    """The fields, dotted, that not all recipes have with the same value, in the order of the recipe."""
    flat = {run.id: leaves(recipes[run.id]) for run in runs if run.id in recipes}
    fields = sorted({field for one in flat.values() for field in one}, key=_place)
    return [
        FieldDifference(field=field, values={id_: one[field] for id_, one in flat.items() if field in one})
        for field in fields
        if field not in _NO_DIFFERENCE and _several([one.get(field, _ABSENT) for one in flat.values()])
    ]


def leaves(body: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Dotted field to value.

    >>> leaves({"seed": 0, "batch": {"micro_tokens": None}})
    {'seed': 0, 'batch.micro_tokens': None}
    """
    found: dict[str, Any] = {}
    for name, value in body.items():
        found |= leaves(value, f"{above}{name}.") if isinstance(value, Mapping) else {f"{above}{name}": value}
    return found


def _place(field: str) -> tuple[float, str]:
    """Where a field stands in a recipe; what is no field of today's comes last."""
    return _places().get(field, float("inf")), field


@cache
def _places() -> dict[str, int]:
    """Every field's place in a recipe: the store does not keep their order."""
    return {field: at for at, field in enumerate(leaf_paths())}


def _several(values: Sequence[Any]) -> bool:
    return any(value != values[0] for value in values)
