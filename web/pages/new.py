"""A new run or sweep: composed, planned and submitted. What is composed stands in the URL, so it can be shared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from pydantic import ValidationError
from sqlalchemy.orm import Session

from forecurve.recipes import PRESETS, Recipe, RecipeError
from forecurve.recipes.presets import ABOUT
from server.dependencies import AppSettings
from server.errors import Problem
from server.recipes.schemas import RecipeChoice
from server.recipes.service import get_recipe, needed, resolve
from server.runs.room import Room
from server.runs.schemas import RunCreate
from server.sweeps.planning import make_plan
from server.sweeps.schemas import ComputeTotal, PlannedArm, SweepCreate
from server.sweeps.service import plan_view
from web.composing import INGREDIENTS, Composed, as_command
from web.page import AnyPage
from web.recipe_fields import Field, recipe_sections

MOST_ARMS = 60  # that are listed
router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Planned:
    """What a submission would create, and what is sent for it."""

    recipe: Sequence[tuple[str, Sequence[Field]]]  # of the run, or of the control, beside itself without the changes
    arms: Sequence[PlannedArm]
    runs: int
    compute: ComputeTotal
    shared: float | None  # compute that the runs share, if they do
    action: str
    page: str  # of what is created, less its id
    body: str  # JSON
    command: str  # the same from a terminal


@router.get("/new")
def compose(page: AnyPage, settings: AppSettings, asked: Annotated[Composed, Query()]) -> HTMLResponse:
    planned, faults = None, []
    try:
        if asked.sent or not asked.lacks_factors:
            planned = plan_of(page.session, asked, Room.of(settings))
    except (RecipeError, Problem, ValidationError) as error:
        faults = _faults(error)
    answer = page.render(
        "new.html",
        asked=asked,
        planned=planned,
        faults=faults,
        at_fault={asked.control_of(fault["field"]) for fault in faults},
        presets={f"preset:{name}": (name, about) for name, about in ABOUT.items() if name in PRESETS},
        other=_other(page.session, asked.base),
        ingredients=INGREDIENTS,
        most_arms=MOST_ARMS,
    )
    answer.status_code = HTTPStatus.UNPROCESSABLE_ENTITY if faults else HTTPStatus.OK
    return answer


def plan_of(session: Session, asked: Composed, room: Room) -> Planned:
    """What is composed, planned as the API plans it.

    Raises:
        RecipeError, Problem, ValidationError: what is composed does not hold.
    """
    body = asked.body()
    if asked.kind == "run":
        recipe = needed(resolve(session, RunCreate.model_validate(body)))
        room.check(recipe)
        budget = ComputeTotal(total=recipe.budget.compute, unit=recipe.budget.unit)
        fields = _beside(session, recipe, body)
        return Planned(fields, (), 1, budget, None, "/v1/runs", "/runs/", _json(body), as_command(body))
    wanted = SweepCreate.model_validate(body)
    plan = make_plan(session, wanted, room)
    view = plan_view(wanted, plan)
    told = _json(body | {"plan_hash": view.plan_hash})  # what is submitted is what was looked at
    fields = _beside(session, plan.base, body)
    command = as_command(body)
    shares = view.budget_compute
    return Planned(fields, view.arms, view.runs, view.compute, shares, "/v1/sweeps", "/sweeps/", told, command)


def _beside(session: Session, recipe: Recipe, body: dict[str, Any]) -> list[tuple[str, list[Field]]]:
    unchanged = RecipeChoice(preset=body.get("preset"), recipe_id=body.get("recipe_id"))
    return recipe_sections(recipe.to_dict(), needed(resolve(session, unchanged)).to_dict())


def _faults(error: RecipeError | Problem | ValidationError) -> list[dict[str, Any]]:
    if isinstance(error, RecipeError):
        return error.problems
    if isinstance(error, Problem):
        return error.errors or [{"field": "recipe", "value": None, "message": error.detail}]
    told = [(".".join(map(str, one["loc"])), one["input"], one["msg"]) for one in error.errors()]
    return [dict(zip(("field", "value", "message"), fault, strict=True)) for fault in told]


def _json(body: dict[str, Any]) -> str:
    try:
        return json.dumps(body, allow_nan=False)
    except ValueError:
        raise RecipeError.one("changes", None, "a number in it is not finite; give another") from None


def _other(session: Session, base: str) -> tuple[str, str] | None:
    """What is no preset, as the form names it, and what it is called."""
    kind, _, named = base.partition(":")
    if kind == "preset" and named in PRESETS:
        return None
    try:
        return base, f"{get_recipe(session, named).name} (a run’s)" if kind == "recipe" else base
    except Problem:
        return base, base
