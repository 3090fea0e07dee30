"""What is refused before any work is done, and what a run would be: for every door, and for --dry-run."""

from __future__ import annotations

from forecurve.recipes import Recipe
from forecurve.recipes.schema import HuggingFaceModel, Interruption
from trainer.context import tokens_needed
from trainer.curriculum.prompts import build_order
from trainer.engines import sampling_config, vllm_setup
from trainer.errors import ConfigurationError
from trainer.models import build_model
from trainer.tasks import DatasetTask, Task, TorusTask, build_task
from trainer.workers import collective


def check_recipe(recipe: Recipe, ray: bool) -> None:
    """Refuse a recipe that this trainer cannot run on this machine, wherever it is to be written.

    Raises:
        ConfigurationError: names the field and the way out.
    """
    collective.refuse(recipe, ray)
    gpus, unit = recipe.resources.gpus, recipe.budget.unit
    if unit.startswith("GPU") and not gpus:
        raise ConfigurationError(
            f"budget.unit is {unit} but resources.gpus is 0; reserve a GPU or count in CPU-seconds, CPU-hours or steps"
        )
    if gpus and not ray:
        raise ConfigurationError(f"resources.gpus is {gpus:g} but --no-ray runs on the CPU; leave --no-ray out")
    if not ray:
        _refuse_many(recipe)
    task = build_task(recipe)
    if isinstance(recipe.model, HuggingFaceModel):
        from trainer.models.huggingface import checked_config  # transformers takes a second to import

        tokens_needed(recipe, task, checked_config(recipe.model.path))
    vllm_setup.refuse(recipe, task)
    _refuse_phrase(recipe, task)
    if isinstance(task, DatasetTask):
        _refuse_idle_knobs(recipe, task)
    build_order(recipe, task)
    task.training_prompt(0)  # draws the pool
    prompts = len(task.held_out_prompts(recipe.evaluation.prompts))
    if prompts < recipe.evaluation.prompts:
        raise ConfigurationError(
            f"evaluation.prompts is {recipe.evaluation.prompts} but this task has only {prompts} held-out prompts; "
            "ask for fewer, or give it more"
        )
    task.start()
    task.close()


def _refuse_many(recipe: Recipe) -> None:
    for name in ("generators", "learners"):
        count = getattr(recipe.resources, name)
        if count > 1:
            raise ConfigurationError(
                f"resources.{name} is {count} but --no-ray is one process; leave --no-ray out, or ask for 1"
            )


def _refuse_idle_knobs(recipe: Recipe, task: DatasetTask) -> None:
    """Fields that would do nothing with these data."""
    count, floor = task.training_count or 0, recipe.algorithm.min_active_prompts
    if recipe.algorithm.no_positive_resampling is not None and count <= floor:
        raise ConfigurationError(
            f"algorithm.min_active_prompts is {floor} and task.train has {count} prompts, so that no prompt could ever "
            "be left out; lower it, or set algorithm.no_positive_resampling to null"
        )
    if recipe.curriculum == "easy-first" and not task.graded:
        raise ConfigurationError(
            "curriculum is easy-first but no row of task.train has another `difficulty` than the others; give them, or "
            "set curriculum to none"
        )


def _refuse_phrase(recipe: Recipe, task: Task) -> None:
    """An interruption whose phrase this tokenizer makes longer than there is room for."""
    control, phrase = recipe.length_control, sampling_config(recipe, task).interruption
    if not isinstance(control, Interruption) or phrase is None:
        return
    needed, most = control.after_high + len(phrase.phrase) + control.answer_tokens, recipe.generation.max_tokens
    if needed > most or not phrase.phrase:
        raise ConfigurationError(
            f"length_control.phrase is {control.phrase!r:.60}, {len(phrase.phrase)} tokens: after {control.after_high} "
            f"tokens and before {control.answer_tokens} of the answer that makes {needed}, but generation.max_tokens "
            f"is {most}; shorten the phrase, interrupt earlier or allow more"
        )


def describe(recipe: Recipe) -> dict[str, object]:
    """What a run of this recipe would be: for --dry-run."""
    task = build_task(recipe)
    held_out = task.held_out_prompts(recipe.evaluation.prompts)
    body: dict[str, object] = {
        "recipe": recipe.to_dict(),
        "digest": recipe.digest,
        "parameters": sum(parameter.numel() for parameter in build_model(recipe).parameters()),
        "completions_per_step": recipe.batch.prompts_per_step * recipe.batch.generations_per_prompt,
        "completions_per_evaluation": len(held_out) * recipe.evaluation.samples,
    }
    if isinstance(task, TorusTask):
        control = recipe.length_control
        interruption = control if isinstance(control, Interruption) else None
        body["chain_ceiling"] = task.ceiling(held_out, recipe.generation.max_tokens, interruption)
    if isinstance(task, DatasetTask):
        body["training_prompts"], body["rows_left_out"] = task.trained_on, task.left_out
    return body
