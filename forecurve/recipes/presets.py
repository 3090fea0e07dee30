"""Named recipes, and what it means to take one ingredient of ScaleRL away."""

from __future__ import annotations

from typing import Any

from .errors import RecipeError, suggestion
from .paths import with_changes
from .schema import Recipe

SCALERL = Recipe(name="scalerl-testbed")
"""ScaleRL (§4) on the testbed: CISPO, prompt averages, batch scale, zero-variance filter, fp32 head, PipelineRL-8."""

SCALERL_REVERSIONS: dict[str, dict[str, Any]] = {
    "cispo": {"algorithm.loss": "dapo"},
    "prompt-aggregation": {"algorithm.aggregation": "sample"},
    "batch-scale": {"algorithm.advantage_scale": "prompt"},
    "zero-variance-filter": {"algorithm.zero_variance_filter": "off"},
    "fp32-head": {"algorithm.logits_precision": "bf16"},
    "pipeline": {"algorithm.max_staleness": 0},
}
"""Ingredient of ScaleRL to the change that reverts it to what came before (§4, leave-one-out; figure 7)."""

PRESETS: dict[str, Recipe] = {
    "scalerl": SCALERL,
    "dapo": with_changes(
        SCALERL,
        {
            "name": "dapo-testbed",
            "algorithm.loss": "dapo",
            "algorithm.advantage_scale": "prompt",
            "algorithm.logits_precision": "bf16",
        },
    ),
}
"""Presets by name."""


def preset(name: str) -> Recipe:
    """The preset of that name; RecipeError lists what exists."""
    if name not in PRESETS:
        raise RecipeError.one("preset", name, "no such preset" + suggestion(name, list(PRESETS)))
    return PRESETS[name]
