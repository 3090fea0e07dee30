"""Base weights: the shipped warm start, checked by digest, or one made on demand and cached."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, load_file

from forecurve.recipes import Recipe
from forecurve.recipes.schema import HuggingFaceModel
from trainer.base_weights import warm_start
from trainer.errors import ConfigurationError
from trainer.models import Policy, TinyConfig, model_config
from trainer.tasks import TorusTask, torus_task
from trainer.tasks.walks import MAX_MOVES
from trainer.terminal import say

ASSETS = Path(__file__).parents[1] / "assets"
SHIPPED = {
    "open": ASSETS / "torus-w64-l2-echo.safetensors",
    "walls": ASSETS / "torus-walls-w64-l2-echo.safetensors",
    "two-robots": ASSETS / "torus-two-robots-w64-l2-echo.safetensors",
}
"""Base models of the repository by layout: all of the default size, with `echo_start`."""

Weights = Mapping[str, NDArray[Any]]


Model = TypeVar("Model", bound=Policy)


def load_into(model: Model, weights: Weights) -> Model:
    """The model with these weights; every tensor must be there."""
    model.load_tensors(weights)
    return model


def base_weights(recipe: Recipe, cache: Path, say: Callable[[str], None] | None = None) -> Weights:
    """The weights a run of `recipe` starts from.

    The shipped files serve their own size with `echo_start`; any other is warm-started here, once, and kept in
    `cache`: a minute of CPU for the small ones. Two runs that need the same one at once make it once. A Hugging Face
    model starts from the float32 weights of its folder.

    Raises:
        ConfigurationError: the folder is no such model, or `cache` cannot be written.
    """
    if isinstance(recipe.model, HuggingFaceModel):
        return folder_weights(recipe.model.path)
    config, task = model_config(recipe), torus_task(recipe)
    if config == TinyConfig(prompt_length=task.prompt_length) and task.echo_start:
        return shipped_weights(SHIPPED[task.layout.name])
    try:
        return _cached(cache / f"{cache_key(config, task)}.safetensors", config, task, say or _to_stderr)
    except OSError as error:
        raise ConfigurationError(
            f"FORECURVE_CACHE is {str(cache)!r}, where no base model can be kept ({error.strerror}); name a directory "
            "that can be written"
        ) from None


def _cached(path: Path, config: TinyConfig, task: TorusTask, say: Callable[[str], None]) -> Weights:
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        cached = _read(path)
        if cached is not None:
            return cached
        say(f"warm-starting a base model of width {config.width}: about a minute, kept in {path}")
        model = warm_start.skilled_base(config, TorusTask(1, MAX_MOVES, task.echo_start, task.layout.name))
        warm_start.save(model, path)
        return load_file(path)


def folder_weights(path: str) -> Weights:
    """The weights in a Hugging Face model's folder, by the names of `Policy.named_tensors`; see `huggingface.load`."""
    from trainer.models import huggingface  # transformers takes a second to import

    tensors = huggingface.load(path).named_tensors()
    return {name: tensor.detach().numpy() for name, tensor in tensors.items()}


def shipped_weights(path: Path = SHIPPED["open"]) -> Weights:
    """A base model of the repository; ConfigurationError when its bytes are not those of its digest file."""
    digest_file = path.with_suffix(".sha256")
    body, expected = path.read_bytes(), digest_file.read_text().split()[0]
    found = hashlib.sha256(body).hexdigest()
    if found != expected:
        raise ConfigurationError(
            f"{path.name} has sha256 {found[:12]}..., but {digest_file.name} says {expected[:12]}...; "
            "restore it, or make it again: make warm-start"
        )
    return load(body)


def cache_key(config: TinyConfig, task: TorusTask) -> str:
    """Name of a warm start: readable sizes, and a digest of all that decides its weights."""
    decides = [asdict(config), task.echo_start, task.layout.name, sorted(task.layout.blocked), warm_start.settings()]
    digest = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:12]
    sizes = f"w{config.width}-l{config.layers}-h{config.heads}"
    return f"torus-{task.layout.name}-{sizes}-{'echo' if task.echo_start else 'plain'}-{digest}"


def _read(path: Path) -> Weights | None:
    try:
        return load_file(path) if path.exists() else None
    except SafetensorError:
        return None  # half a file from another program; made again


def _to_stderr(message: str) -> None:
    say(message, sys.stderr)
