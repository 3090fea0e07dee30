"""Tasks with a verifiable reward."""

from __future__ import annotations

from forecurve.recipes import Recipe
from forecurve.recipes.schema import Torus

from .base import Task
from .torus import TorusTask

__all__ = ["Task", "TorusTask", "build_task"]


def build_task(recipe: Recipe) -> TorusTask:
    """The task that a recipe names."""
    task = recipe.task
    assert isinstance(task, Torus), task.kind
    return TorusTask(task.min_moves, task.max_moves, task.echo_start, task.layout, task.pool, recipe.seed)
