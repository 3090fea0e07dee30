"""Tasks with a verifiable reward."""

from __future__ import annotations

from functools import lru_cache

from forecurve.recipes import Recipe
from forecurve.recipes.schema import Dataset, HuggingFaceModel, Torus

from .base import Task
from .dataset import DatasetTask
from .torus import TorusTask

__all__ = ["DatasetTask", "Task", "TorusTask", "build_task", "torus_task"]


def build_task(recipe: Recipe) -> Task:
    """The task that a recipe names. Parts of one process that name the same dataset share it.

    Raises:
        ConfigurationError: see `DatasetTask`.
    """
    task = recipe.task
    if isinstance(task, Torus):
        return torus_task(recipe)
    assert isinstance(recipe.model, HuggingFaceModel), recipe.model.kind
    return _dataset_task(task.model_dump_json(), recipe.model.path)


def torus_task(recipe: Recipe) -> TorusTask:
    """The torus task of a recipe that names it."""
    task = recipe.task
    assert isinstance(task, Torus), task.kind
    return _torus_task(task, recipe.seed)


@lru_cache(maxsize=4)
def _torus_task(task: Torus, seed: int) -> TorusTask:
    """A large pool takes seconds to draw, and nothing in a torus task changes."""
    return TorusTask(task.min_moves, task.max_moves, task.echo_start, task.layout, task.pool, seed)


@lru_cache(maxsize=2)
def _dataset_task(section: str, model_path: str) -> DatasetTask:
    from trainer.models.tokenizer import end_tokens, load_tokenizer  # transformers takes a second to import

    tokenizer = load_tokenizer(model_path)
    return DatasetTask(Dataset.model_validate_json(section), tokenizer, end_tokens(model_path, tokenizer))
