"""HTTP door of the recipes room."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from forecurve.recipes import PRESETS, with_changes
from forecurve.recipes.reference import json_schema
from server.access.idempotency import IdempotentRoute
from server.dependencies import DbSession, Operator, Reader
from server.errors import Invalid
from server.pagination import Cursor, Limit, Page
from server.problems import problems

from . import service
from .schemas import PresetRead, Presets, RecipeChoice, RecipeCreate, RecipeRead

router = APIRouter(tags=["recipes"], route_class=IdempotentRoute)


@router.get("/recipes:presets")
def list_presets(_: Reader) -> Presets:
    """The recipes that come with Forecurve."""
    presets = [PresetRead(name=name, digest=recipe.digest, body=recipe.to_dict()) for name, recipe in PRESETS.items()]
    return Presets(items=presets)


@router.get("/recipes:schema")
def recipe_schema(_: Reader) -> dict[str, Any]:
    """JSON Schema of a recipe: every field with its type, range, default and meaning."""
    return json_schema()


@router.post(
    "/recipes",
    status_code=201,
    responses={200: {"model": RecipeRead, "description": "The same recipe is stored already"}, **problems(413)},
)
def create_recipe(body: RecipeCreate, response: Response, session: DbSession, _: Operator) -> RecipeRead:
    """Store a recipe: in full, or a preset with changes. Equal content under an equal name is stored once."""
    if body.body is not None and body.preset is not None:
        raise Invalid.field("preset", body.preset, "`body` is given too; name one recipe only")
    if body.body is None and body.preset is None:
        raise Invalid.field("body", None, "a recipe is needed; give `body` or `preset`")
    choice = RecipeChoice(recipe=body.body, preset=body.preset, changes=body.changes)
    recipe = service.needed(service.resolve(session, choice))
    if body.name is not None:
        recipe = with_changes(recipe, {"name": body.name})
    row, is_new = service.store(session, recipe)
    response.status_code = 201 if is_new else 200
    return RecipeRead.model_validate(row)


@router.get("/recipes")
def list_recipes(session: DbSession, _: Reader, cursor: Cursor = None, limit: Limit = 50) -> Page[RecipeRead]:
    """Recipes, newest first."""
    rows, following = service.list_recipes(session, cursor=cursor, limit=limit)
    return Page(items=[RecipeRead.model_validate(row) for row in rows], next_cursor=following)


@router.get("/recipes/{recipe_id:id}", responses=problems(404))
def read_recipe(recipe_id: str, session: DbSession, _: Reader) -> RecipeRead:
    """One recipe, resolved: every field, defaults included."""
    return RecipeRead.model_validate(service.get_recipe(session, recipe_id))
