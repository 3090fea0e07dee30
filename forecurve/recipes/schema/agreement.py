"""What the sections of a recipe must agree on. Each rule yields the field to change, its value, and the way out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .base import Conflict
from .models import TinyModel
from .running import MOST_STEPS
from .sampling import Interruption, LengthPenalty
from .tasks import VERIFIER_SECONDS, Dataset, Torus

if TYPE_CHECKING:
    from .recipe import Recipe

TINY_MAX_TOKENS = 64
"""Response positions of the tiny model."""


def conflicts_between_sections(recipe: Recipe) -> Iterator[Conflict]:
    """Every fault between sections that are each valid alone."""
    for rule in (_tiny_model, _length_control, _prompt_pool, _curriculum, _schedule, _stalls):
        yield from rule(recipe)


def _tiny_model(recipe: Recipe) -> Iterator[Conflict]:
    if not isinstance(recipe.model, TinyModel):
        return
    if isinstance(recipe.task, Dataset):
        message = "the tiny model has no tokenizer for a dataset's text; set model.kind: huggingface and model.path"
        yield Conflict("model.kind", "tiny", message)
    if recipe.generation.engine == "vllm":
        message = "vllm cannot load the tiny model; take torch, or model.kind: huggingface"
        yield Conflict("generation.engine", "vllm", message)
    if recipe.generation.max_tokens > TINY_MAX_TOKENS:
        message = f"the tiny model has {TINY_MAX_TOKENS} response positions; take fewer, or model.kind: huggingface"
        yield Conflict("generation.max_tokens", recipe.generation.max_tokens, message)


def _length_control(recipe: Recipe) -> Iterator[Conflict]:
    control, budget = recipe.length_control, recipe.generation.max_tokens
    if isinstance(control, Interruption) and control.after_high + control.answer_tokens >= budget:
        needed = control.after_high + control.answer_tokens + 1
        message = (
            f"{control.after_high} tokens, at least one of the phrase and {control.answer_tokens} of the answer are "
            f"{needed}, but generation.max_tokens is {budget}; interrupt earlier or allow more"
        )
        yield Conflict("length_control.after_high", control.after_high, message)
    if isinstance(control, LengthPenalty) and control.longest - control.cushion >= budget:
        message = (
            f"the penalty begins at {control.longest - control.cushion} tokens, beyond generation.max_tokens, "
            f"{budget}; it would never act"
        )
        yield Conflict("length_control.longest", control.longest, message)


def _prompt_pool(recipe: Recipe) -> Iterator[Conflict]:
    threshold, task = recipe.algorithm.no_positive_resampling, recipe.task
    if threshold is None or not isinstance(task, Torus):
        return
    if task.pool is None:
        message = "an endless task never shows a prompt twice; set task.pool, or this to null"
        yield Conflict("algorithm.no_positive_resampling", threshold, message)
    elif task.pool <= recipe.algorithm.min_active_prompts:
        message = f"task.pool is {task.pool}, so that no prompt could ever be left out; lower this or enlarge the pool"
        yield Conflict("algorithm.min_active_prompts", recipe.algorithm.min_active_prompts, message)


def _curriculum(recipe: Recipe) -> Iterator[Conflict]:
    if recipe.curriculum != "none" and isinstance(recipe.task, Torus) and recipe.task.pool is None:
        message = "an endless task has no epoch to order; set task.pool, or curriculum: none"
        yield Conflict("curriculum", recipe.curriculum, message)


def _schedule(recipe: Recipe) -> Iterator[Conflict]:
    optimizer, last = recipe.optimizer, recipe.budget.last_step
    if optimizer.schedule != "constant" and optimizer.warmup_steps >= last:
        message = f"the warm-up takes all {last} steps of the budget, and {optimizer.schedule} never begins"
        yield Conflict("optimizer.warmup_steps", optimizer.warmup_steps, message)
    if optimizer.schedule != "constant" and recipe.budget.unit != "steps" and last == MOST_STEPS:
        message = (
            f"falls to 0 at the last step, which a budget in {recipe.budget.unit} does not tell; set budget.max_steps "
            "to the steps that it will buy, or count the budget in steps"
        )
        yield Conflict("optimizer.schedule", optimizer.schedule, message)


def _stalls(recipe: Recipe) -> Iterator[Conflict]:
    task, limit = recipe.task, recipe.resources.stall_seconds
    if not isinstance(task, Dataset):
        return
    used = set(task.verifiers.values())
    if "code" in used and limit <= task.code_seconds:
        longest = f"task.code_seconds lets one verdict take {task.code_seconds:g} s"
    elif used - {"code", "exact"} and limit <= VERIFIER_SECONDS:
        longest = f"one verdict of a verifier in task.verifiers may take {VERIFIER_SECONDS:g} s"
    else:
        return
    message = f"{longest}, which would count as a stall; allow more than that"
    yield Conflict("resources.stall_seconds", limit, message)
