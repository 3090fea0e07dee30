"""Policies."""

from __future__ import annotations

from forecurve.recipes import Recipe
from forecurve.recipes.schema import TinyModel
from trainer.tasks import build_task

from .tiny import TinyConfig, TinyDecoder

__all__ = ["TinyConfig", "TinyDecoder", "build_model", "model_config"]


def model_config(recipe: Recipe) -> TinyConfig:
    """Sizes of the policy that a recipe names."""
    task, model = build_task(recipe), recipe.model
    assert isinstance(model, TinyModel), model.kind
    return TinyConfig(
        width=model.width,
        layers=model.layers,
        heads=model.heads,
        vocabulary=task.vocabulary_size,
        prompt_length=task.prompt_length,
    )


def build_model(recipe: Recipe) -> TinyDecoder:
    """The policy that a recipe names, with fresh weights; `trainer.base_weights` has the warm ones."""
    return TinyDecoder(model_config(recipe))
