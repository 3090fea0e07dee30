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
from server.recipes.service import get_recipe, needed, resolve
from server.runs.room import Room
from server.runs.schemas import RunCreate
from server.sweeps.planning import make_plan
from server.sweeps.schemas import ComputeTotal, PlannedArm, SweepCreate
from web.composing import INGREDIENTS, Composed, as_command
from web.page import AnyPage

MOST_ARMS = 60  # that are listed
router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Planned:
    """What a submission would create, and what is sent for it."""

    base: Recipe
    arms: Sequence[PlannedArm]
    runs: int
    compute: ComputeTotal
    action: str
    page: str  # of what is created, less its id
    body: str  # JSON
    command: str  # the same from a terminal


@router.get("/new")
def compose(page: AnyPage, settings: AppSettings, asked: Annotated[Composed, Query()]) -> HTMLResponse:
    planned, faults = None, []
    if asked.sent or not asked.lacks_factors:
        try:
            planned = plan_of(page.session, asked, Room.of(settings))
        except RecipeError as error:
            faults = error.problems
        except Problem as error:
            faults = error.errors or [{"field": "recipe", "value": None, "message": error.detail}]
        except ValidationError as error:
            faults = [
                {"field": ".".join(map(str, one["loc"])), "value": one["input"], "message": one["msg"]}
                for one in error.errors()
            ]
    answer = page.render(
        "new.html",
        asked=asked,
        planned=planned,
        faults=faults,
        at_fault={asked.control_of(fault["field"]) for fault in faults},
        presets={f"preset:{name}": (name, about) for name, about in ABOUT.items() if name in PRESETS},
        other=_other(page.session, asked.base),
        ingredients=INGREDIENTS,
        described=described,
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
        return Planned(recipe, (), 1, budget, "/v1/runs", "/runs/", _json(body), as_command(body))
    plan = make_plan(session, SweepCreate.model_validate(body), room)
    view = plan.view()
    told = _json(body | {"plan_hash": view.plan_hash})  # what is submitted is what was looked at
    return Planned(plan.base, view.arms, view.runs, view.compute, "/v1/sweeps", "/sweeps/", told, as_command(body))


def _json(body: dict[str, Any]) -> str:
    try:
        return json.dumps(body, allow_nan=False)
    except ValueError:
        raise RecipeError.one("changes", None, "a number in it is not finite; give another") from None


def _other(session: Session, base: str) -> tuple[str, str] | None:
    """A recipe that is no preset, as the form names it, and what it is called."""
    kind, _, named = base.partition(":")
    if kind != "recipe":
        return None
    try:
        return base, f"{get_recipe(session, named).name} (a run’s)"
    except Problem:
        return base, named


def described(recipe: Recipe) -> list[tuple[str, dict[str, Any]]]:
    """A recipe by its sections, the plain fields first."""
    body = recipe.to_dict()
    plain = {name: value for name, value in body.items() if not isinstance(value, dict)}
    return [("recipe", plain), *((name, value) for name, value in body.items() if isinstance(value, dict))]
