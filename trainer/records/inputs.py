"""What a run reads beside its recipe, by digests: what it is judged on, and the weights that it began with.

A curve is of one held-out set, and a KL term to one set of starting weights. Files can change between two attempts; a
resume that found others would draw one curve through two measures. (Training prompts are the prompt order's affair.)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from forecurve.recipes import Recipe
from trainer.errors import ConfigurationError
from trainer.tasks import Task

_SAMPLED = 4096
"""Values of a tensor that its digest looks at: whole tensors would take a large model half a minute."""
_CHANGED = {
    "judged": "judged on other prompts: the files of task.held_out, task.downstream or task.train",
    "base": "begun with other weights: those of model.path",
}


def digests(recipe: Recipe, task: Task, weights: Mapping[str, Any]) -> dict[str, str]:
    """By what was read; `weights` are those that the run begins with."""
    return {"judged": _judged(recipe, task), "base": _weights(weights)}


def refuse_changed(checkpoint: Path, then: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raise ConfigurationError where a resumed run would read something else than before."""
    for name, digest in now.items():
        if then.get(name) != digest:
            raise ConfigurationError(
                f"{checkpoint} was {_CHANGED[name]} have changed since; bring them back, or go on from it with --fork"
            )


def _judged(recipe: Recipe, task: Task) -> str:
    sets = {"held-out": task.held_out_prompts(recipe.evaluation.prompts), **task.downstream_prompts()}
    said = {name: [(each.text, each.answer, each.task) for each in prompts] for name, prompts in sets.items()}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _weights(weights: Mapping[str, Any]) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        values = np.asarray(tensor).reshape(-1)
        digest.update(f"{name} {np.shape(tensor)} {values.dtype}".encode())
        digest.update(np.ascontiguousarray(values[:: max(1, len(values) // _SAMPLED)]).tobytes())
    return digest.hexdigest()
