"""Tasks with a verifiable reward."""

from __future__ import annotations

from forecurve.recipes import Recipe

from .base import Task
from .torus import TorusTask

__all__ = ["Task", "TorusTask", "build_task"]


def build_task(recipe: Recipe) -> TorusTask:
    """The task that a recipe names."""
    task = recipe.task
    return TorusTask(min_moves=task.min_moves, max_moves=task.max_moves, echo_start=task.echo_start)
