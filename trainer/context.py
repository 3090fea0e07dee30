"""Whether a model has room for a prompt and its response: the same question for every engine."""

from __future__ import annotations

from typing import Any

from forecurve.recipes import Recipe
from trainer.errors import ConfigurationError
from trainer.tasks import Task

_STRETCHED_ALREADY = ("default", "llama3", "mrope")
"""Kinds of rotary embedding whose `max_position_embeddings` is the stretched length, if there is one."""
_BY_LENGTH = ("dynamic", "longrope", "su")
"""Kinds that turn all positions anew where a sequence is longer than the model's original length. Keys in a cache
cannot follow, and what a token is worth would depend on the other rows of its batch: they have their original room."""


def tokens_needed(recipe: Recipe, task: Task, config: Any) -> int:
    """The longest prompt and a whole response, in tokens; `config` is that of the model's folder.

    Raises:
        ConfigurationError: the model has no room for them.
    """
    longest, response = task.longest_prompt, recipe.generation.max_tokens
    room = _room(config)
    if room is not None and longest + response > room:
        kind = _kind(_rotary(config))
        why = f" (its {kind} rotary embedding cannot be stretched under a cache)" if kind in _BY_LENGTH else ""
        raise ConfigurationError(
            f"generation.max_tokens {response} and the longest prompt, {longest}, make {longest + response} tokens, "
            f"but model.path {config.name_or_path!r} has room for {room}{why}; lower generation.max_tokens or leave "
            "long prompts out (task.max_prompt_tokens)"
        )
    return longest + response


def _room(config: Any) -> int | None:
    """Positions of the model; None where its positions have no end."""
    room: int | None = getattr(config, "max_position_embeddings", None)
    rotary = _rotary(config)
    kind = _kind(rotary)
    if kind in _BY_LENGTH:
        original = rotary.get("original_max_position_embeddings")
        return room if original is None or kind == "dynamic" else int(original)
    if room is None or kind in _STRETCHED_ALREADY or "factor" not in rotary:
        return room
    begins = rotary.get("original_max_position_embeddings") if kind == "yarn" else None
    return max(room, int((begins or room) * rotary["factor"]))


def _rotary(config: Any) -> dict[str, Any]:
    return getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}


def _kind(rotary: dict[str, Any]) -> str:
    return str(rotary.get("rope_type", rotary.get("type", "default")))
