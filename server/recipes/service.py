"""Storing recipes once, and finding the one that a request means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import select, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from forecurve.recipes import Recipe, load_recipe, preset, with_changes
from server.database import new_id
from server.errors import Invalid, NotFound
from server.pagination import newest_first

from .models import RecipeRow
from .schemas import RecipeChoice


def get_recipe(session: Session, recipe_id: str) -> RecipeRow:
    row = session.get(RecipeRow, recipe_id)
    if row is None:
        raise NotFound.field("recipe_id", recipe_id, "no such recipe; `GET /v1/recipes` lists them")
    return row


def list_recipes(session: Session, *, cursor: str | None, limit: int) -> tuple[Sequence[RecipeRow], str | None]:
    """One page of recipes, newest first."""
    return newest_first(session, select(RecipeRow), RecipeRow.id, cursor, limit)


def resolve(session: Session, choice: RecipeChoice) -> Recipe | None:
    """The recipe that a request names, its changes applied; None when it names none.

    Raises:
        Invalid: more than one of `recipe`, `recipe_id` and `preset`, or changes to nothing.
        NotFound: no recipe has that id.
        RecipeError: the recipe or a change does not hold; every fault at once.
    """
    given = [name for name in ("recipe", "recipe_id", "preset") if getattr(choice, name) is not None]
    if len(given) > 1:
        raise Invalid.field(given[1], getattr(choice, given[1]), f"`{given[0]}` is given too; name one recipe only")
    if not given:
        if choice.changes:
            message = "changes need a recipe to change; give `recipe`, `recipe_id` or `preset`"
            raise Invalid.field("changes", choice.changes, message)
        return None
    base = _named(session, choice)
    return with_changes(base, choice.changes) if choice.changes else base


def needed(recipe: Recipe | None) -> Recipe:
    """The recipe, or Invalid with how to name one."""
    if recipe is None:
        raise Invalid.field("recipe", None, "a recipe is needed; give `recipe`, `recipe_id` or `preset`")
    return recipe


def store(session: Session, recipe: Recipe) -> tuple[RecipeRow, bool]:
    """The row of `recipe`, and whether it is new. Equal content under an equal name is one row."""
    fresh = insert(RecipeRow).values(**_values(recipe)).on_conflict_do_nothing(index_elements=["digest", "name"])
    is_new = session.scalar(fresh.returning(RecipeRow.id)) is not None
    same = select(RecipeRow).where(RecipeRow.digest == recipe.digest, RecipeRow.name == recipe.name)
    return session.scalars(same).one(), is_new


def store_all(session: Session, recipes: Iterable[Recipe]) -> dict[tuple[str, str], str]:
    """Store many recipes in one statement; the answer is (digest, name) to id."""
    by_key = {(recipe.digest, recipe.name): recipe for recipe in recipes}
    ordered = [_values(by_key[key]) for key in sorted(by_key)]  # one order for all, so that two sweeps never deadlock
    session.execute(insert(RecipeRow).on_conflict_do_nothing(index_elements=["digest", "name"]), ordered)
    found = select(RecipeRow.digest, RecipeRow.name, RecipeRow.id)
    rows = session.execute(found.where(tuple_(RecipeRow.digest, RecipeRow.name).in_(list(by_key))))
    return {(row.digest, row.name): row.id for row in rows}


def _named(session: Session, choice: RecipeChoice) -> Recipe:
    if choice.recipe is not None:
        return load_recipe(choice.recipe)
    if choice.preset is not None:
        return preset(choice.preset)
    assert choice.recipe_id is not None
    return load_recipe(get_recipe(session, choice.recipe_id).body)


def _values(recipe: Recipe) -> dict[str, object]:
    return {"id": new_id("rec"), "name": recipe.name, "digest": recipe.digest, "body": recipe.to_dict()}
