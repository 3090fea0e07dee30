"""Named recipes on the testbed, and what it means to take one ingredient of ScaleRL away.

The recipes are those that the paper compares (figure 2, A.16) and its leave-one-out set (figure 7). All of them stand
on the testbed's task, tiny model, batch and budget, so that a run takes a minute of CPU; learning rate, warm-up and
lengths are the testbed's too, not the paper's 5e-7, 100 steps and 14k tokens. Batches of 768 and 1,280 completions
become 32 x 16 and 53 x 16: the same proportion.

The paper's text does not say whether the other recipes keep interruption, a KL term, or a filter that A.16 does not
name: here they have none. Like the paper's baselines they share ScaleRL's optimiser and rewards.
"""

from __future__ import annotations

import math
from typing import Any

from .errors import RecipeError, suggestion
from .paths import diff, get_value, with_changes
from .schema import Recipe

SCALERL = with_changes(
    Recipe(name="scalerl-testbed"),
    {
        "task.pool": 2048,
        "algorithm.no_positive_resampling": 0.9,
        "length_control.kind": "interruption",
    },
)
"""ScaleRL (§4) on the testbed: CISPO, prompt averages, batch scale, zero-variance filter, No-Positive-Resampling,
interruption, fp32 head, PipelineRL-8.

The pool of 2,048 prompts is 64 steps long; the paper's Polaris-53k is some 1,100. Interruption comes after 18 to 20 of
24 tokens (0.75 to 0.83 of the budget; the paper's 10k to 12k are 0.70 to 0.84 of its 14k), and `>` is the torus's word
for "the answer is".
"""

SCALERL_REVERSIONS: dict[str, dict[str, Any]] = {
    "cispo": {"algorithm.loss": "dapo"},
    "prompt-aggregation": {"algorithm.aggregation": "sample"},
    "batch-scale": {"algorithm.advantage_scale": "prompt"},
    "zero-variance-filter": {"algorithm.zero_variance_filter": "off"},
    "fp32-head": {"algorithm.logits_precision": "bf16"},
    "pipeline": {"algorithm.off_policy": "ppo"},
    "interruption": {"length_control.kind": "penalty"},
    "no-positive-resampling": {"algorithm.no_positive_resampling": None},
}
"""Ingredient of ScaleRL to the change that reverts it to what came before (§4, leave-one-out; figure 7).

The one field says whether a recipe has the ingredient; `reversion` adds what the change needs in a recipe of its own.
"""


def lacking(base: Recipe, ingredient: str) -> str | None:
    """What `base` has in place of an ingredient of ScaleRL, in words; None where it has the ingredient.

    No-Positive-Resampling may have any threshold.
    """
    ((path, reverted),) = SCALERL_REVERSIONS[ingredient].items()
    here, there = get_value(base, path), get_value(SCALERL, path)
    if here == there or (ingredient == "no-positive-resampling" and here != reverted):
        return None
    return f"{path} is {'null' if here is None else here}, and ScaleRL's is {there}"


def reversion(base: Recipe, ingredient: str) -> dict[str, Any]:
    """The changes that take an ingredient, which it has, out of `base`: only fields that then differ.

    The length penalty that stands in for interruption is as large as the base's response budget: it reaches -1 there
    and begins a seventh earlier, as the paper's does (A.10: 14k and 2k of 14,336 tokens).
    """
    changes, budget = dict(SCALERL_REVERSIONS[ingredient]), base.generation.max_tokens
    if ingredient == "interruption":
        changes |= {"length_control.longest": budget, "length_control.cushion": math.ceil(budget / 7)}
    return {path: value for path, (_, value) in diff(base, with_changes(base, changes)).items()}


FIGURE_7: dict[str, str] = {
    "plan": "batch-scale",
    "lp": "interruption",
    "batch": "zero-variance-filter",
    "8op": "pipeline",
    "fp32": "fp32-head",
    "savg": "prompt-aggregation",
    "dapo": "cispo",
    "uniform-sampling": "no-positive-resampling",
}
"""The paper's names of its leave-one-out runs to the ingredient that each goes without; the last is of its appendix."""

_WITHOUT_SCALERL: dict[str, Any] = {
    "algorithm.advantage_scale": "prompt",
    "algorithm.logits_precision": "bf16",
    "algorithm.zero_variance_filter": "off",
    "algorithm.no_positive_resampling": None,
    "length_control.kind": "none",
}
_DAPO_CLIP = {"algorithm.loss": "dapo", "algorithm.clip_low": 0.2, "algorithm.clip_high": 0.26}
_BIGGER_BATCH = {"batch.prompts_per_step": 53, "algorithm.zero_variance_filter": "shrink"}
_PPO_8 = {"algorithm.off_policy": "ppo", "algorithm.max_staleness": 8}

_CHANGES: dict[str, dict[str, Any]] = {
    "scalerl": {},
    "grpo-deepseek": _WITHOUT_SCALERL
    | _PPO_8
    | {
        "algorithm.loss": "grpo",
        "algorithm.clip_low": 0.2,
        "algorithm.clip_high": 0.2,
        "algorithm.aggregation": "sample",
    },
    "dapo-qwen": _WITHOUT_SCALERL | _PPO_8 | _DAPO_CLIP | _BIGGER_BATCH,
    "magistral": _WITHOUT_SCALERL | _DAPO_CLIP | _BIGGER_BATCH,
    "minimax-m1": _WITHOUT_SCALERL | _PPO_8 | _BIGGER_BATCH | {"algorithm.logits_precision": "fp32"},
} | {f"loo-{name}": reversion(SCALERL, ingredient) for name, ingredient in FIGURE_7.items()}

ABOUT: dict[str, str] = {
    "scalerl": "ScaleRL: every ingredient of §4.",
    "grpo-deepseek": "DeepSeek's GRPO as in A.16: clip 0.2 on both sides, sample averages, PPO-off-policy-8.",
    "dapo-qwen": "DAPO as in A.16: clip 0.2 and 0.26, prompt averages, PPO-off-policy-8, the bigger batch with "
    "zero-variance prompts dropped.",
    "magistral": "Magistral as in A.16: like DAPO, on PipelineRL.",
    "minimax-m1": "MiniMax-M1 as in A.16: CISPO, fp32 head, prompt averages, PPO-off-policy-8, the bigger batch.",
} | {f"loo-{name}": f"ScaleRL without its {ingredient} (figure 7)." for name, ingredient in FIGURE_7.items()}
"""What each preset is, in a sentence."""

PRESETS: dict[str, Recipe] = {
    name: with_changes(SCALERL, {"name": f"{name}-testbed"} | changes) for name, changes in _CHANGES.items()
}
"""Presets by name."""


def preset(name: str) -> Recipe:
    """The preset of that name; RecipeError lists what exists."""
    if name not in PRESETS:
        raise RecipeError.one("preset", name, "no such preset" + suggestion(name, list(PRESETS)))
    return PRESETS[name]
