"""What the recipes room takes and gives over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from forecurve.recipes import Name
from server.bodies import Body


class RecipeChoice(Body):
    """Which recipe is meant: given in full, by id, or a preset; with changes on top."""

    recipe: dict[str, Any] | None = Field(None, description="A recipe in full; what is left out takes its default.")
    recipe_id: str | None = None
    preset: str | None = Field(None, description="Name of a preset, see `GET /v1/recipes:presets`.")
    changes: dict[str, Any] = Field({}, description="Dotted field to value, e.g. `optimizer.learning_rate`.")


class RecipeCreate(Body):
    """A recipe in full (`body`), or a preset with changes."""

    name: Annotated[Name, Field(max_length=120)] | None = None
    body: dict[str, Any] | None = None
    preset: str | None = None
    changes: dict[str, Any] = Field({}, description="Dotted field to value.")


class RecipeRead(BaseModel):
    """A recipe: immutable, named by its digest."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    digest: str
    body: dict[str, Any]
    created_at: datetime


class PresetRead(BaseModel):
    name: str
    digest: str
    body: dict[str, Any]


class Presets(BaseModel):
    items: list[PresetRead]
