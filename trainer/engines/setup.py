"""From a recipe to an engine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from forecurve.recipes import Recipe, schema
from trainer.models.base import Policy
from trainer.streams import Stream
from trainer.tasks import Task

from . import vllm_setup
from .base import Engine, Interruption, SamplingConfig
from .torch_engine import TorchEngine


def build_engine(recipe: Recipe, task: Task, make_model: Callable[[], Policy], device: str = "cpu") -> Engine:
    """The engine that the recipe names. A torch engine's weights of version 0 are those of `make_model`, vLLM's those
    of the model's folder."""
    if recipe.generation.engine == "vllm":
        return vllm_setup.build(recipe, task, sampling_config(recipe, task), device)
    return TorchEngine(make_model(), sampling_config(recipe, task), device=device)


def sampling_config(recipe: Recipe, task: Task) -> SamplingConfig:
    """How the recipe samples responses to the task."""
    return SamplingConfig(
        max_tokens=recipe.generation.max_tokens,
        temperature=recipe.generation.temperature,
        end_tokens=task.end_tokens,
        logits_precision=recipe.algorithm.logits_precision,
        interruption=_interruption(recipe, task),
    )


def interruption_places(recipe: Recipe, seed: tuple[int, ...], samples: int) -> NDArray[np.int64] | None:
    """After how many tokens each response is interrupted [G], uniform in the recipe's range; None: never (A.10)."""
    control = recipe.length_control
    if not isinstance(control, schema.Interruption):
        return None
    return np.random.default_rng((Stream.INTERRUPTIONS, *seed)).integers(
        control.after_low, control.after_high + 1, samples
    )


def _interruption(recipe: Recipe, task: Task) -> Interruption | None:
    control = recipe.length_control
    if not isinstance(control, schema.Interruption):
        return None
    return Interruption(tuple(task.encode(control.phrase)), _closed(task, control.phrase), control.answer_tokens)


def _closed(task: Task, phrase: str) -> Callable[[NDArray[np.int64]], NDArray[np.bool_]]:
    """Whether rows have written the last word of the phrase, such as `</think>`. As text: what stands around a word
    decides which tokens it is written with."""
    word = (phrase.split() or [phrase])[-1]

    def closed(tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.array([word in text for text in task.texts(tokens, [tokens.shape[1]] * len(tokens))], dtype=np.bool_)

    return closed
