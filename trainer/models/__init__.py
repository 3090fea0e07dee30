"""Policies."""

from __future__ import annotations

from forecurve.recipes import Recipe
from forecurve.recipes.schema import HuggingFaceModel, TinyModel
from trainer.errors import ConfigurationError
from trainer.tasks import build_task, torus_task

from .base import Policy
from .tiny import TinyConfig, TinyDecoder

__all__ = ["Policy", "TinyConfig", "TinyDecoder", "build_model", "model_config"]


def model_config(recipe: Recipe) -> TinyConfig:
    """Sizes of the tiny decoder that a recipe names."""
    task, model = torus_task(recipe), recipe.model
    assert isinstance(model, TinyModel), model.kind
    return TinyConfig(
        width=model.width,
        layers=model.layers,
        heads=model.heads,
        vocabulary=task.vocabulary_size,
        prompt_length=task.prompt_length,
    )


def build_model(recipe: Recipe) -> Policy:
    """The policy that a recipe names, its weights still to be loaded: `base_weights` has them.

    Raises:
        ConfigurationError: the folder of a Hugging Face model is not what it has to be, or has too few tokens.
    """
    model = recipe.model
    if isinstance(model, TinyModel):
        return TinyDecoder(model_config(recipe))
    from . import huggingface  # transformers takes a second to import, and the tiny decoder needs none of it

    config = huggingface.read_config(model.path)
    _check_vocabulary(recipe, model, config.vocab_size)
    return huggingface.blank(config, model.dtype)


def _check_vocabulary(recipe: Recipe, model: HuggingFaceModel, size: int) -> None:
    needed = build_task(recipe).vocabulary_size
    if size < needed:
        raise ConfigurationError(
            f"model.path {model.path!r} has {size} tokens in its vocabulary; the {recipe.task.kind} task needs {needed}"
        )
