"""From a recipe and a directory to a finished run: base weights, workers, reporters, controller, exit code."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from forecurve.recipes import Recipe
from forecurve.recipes.schema import Interruption
from trainer import checkpoint as checkpoints
from trainer.checkpoint import Checkpoint
from trainer.controller import Controller, Outcome
from trainer.directory import DirectoryReporter
from trainer.engines import vllm_setup
from trainer.errors import ConfigurationError, TrainerError, WorkerLost
from trainer.faults import may_go_better
from trainer.models import build_model
from trainer.origin import Origin, checkpoint_at, origin_of, record
from trainer.progress import Progress
from trainer.prompts import build_order
from trainer.reporting import ClientReporter, Reporter, Reporters, RunClient
from trainer.state import code_of, code_versions, offsets_of
from trainer.stopping import StopRequest
from trainer.tasks import DatasetTask, Task, TorusTask, build_task
from trainer.types import Group
from trainer.weights import Weights, base_weights
from trainer.workers import Workers, collective


@dataclass(frozen=True, slots=True)
class Launch:
    """How to run: `ray` actors or this process, torch threads a worker, and where to begin.

    `resume`: go on from the newest checkpoint in `directory`, if there is one. `source`: begin at this checkpoint, or
    at the newest one of this run's directory; `digest`: and at no other than the one with this digest. `forked` allows
    another recipe than its own.
    """

    directory: Path
    ray: bool = True
    threads: int = 1
    resume: bool = False
    source: Path | None = None
    digest: str | None = None
    forked: bool = False
    attempt: int = 1
    progress: bool = True


@dataclass(frozen=True, slots=True)
class Beginning:
    """The checkpoint that a run begins at (None: step 0), and where it comes from when that is another run's."""

    checkpoint: Checkpoint | None
    origin: Origin | None = None


def train(recipe: Recipe, launch: Launch, client: RunClient | None = None) -> Outcome:
    """Run a recipe to its end and report how it went.

    Raises:
        ConfigurationError: before anything was started: this machine or directory cannot run this recipe.
        WorkerLost: another attempt may go better; already reported as `lost`, with the reason.
        TrainerError: the run failed; already reported as such, with the reason.
    """
    check(recipe, launch)
    progress = Progress(recipe.budget) if launch.progress else None
    local = DirectoryReporter(launch.directory, launch.attempt, progress)
    reporter = Reporters(local, ClientReporter(client)) if client else Reporters(local)
    try:
        outcome = _train(recipe, launch, local, reporter)
    except Exception as error:
        reason = str(error) if isinstance(error, TrainerError) else f"{type(error).__name__}: {error}"
        if may_go_better(error):
            reason = local.lost(reason)
            reporter.finish("lost", reason)
            raise WorkerLost(reason) from error
        reporter.finish("failed", reason)
        raise
    reporter.finish(outcome.outcome, outcome.reason)
    return outcome


def check(recipe: Recipe, launch: Launch) -> None:
    """Refuse what cannot work, before any work is done; ConfigurationError names the field and the way out."""
    check_recipe(recipe, launch.ray)
    begin(recipe, launch)


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
    task = build_task(recipe)
    vllm_setup.refuse(recipe, task)
    prompts = len(task.held_out_prompts(recipe.evaluation.prompts))
    if prompts < recipe.evaluation.prompts:
        raise ConfigurationError(
            f"evaluation.prompts is {recipe.evaluation.prompts} but this task has only {prompts} held-out prompts; "
            "ask for fewer, or give it more"
        )
    task.start()
    task.close()


def begin(recipe: Recipe, launch: Launch) -> Beginning:
    """Where the run begins. Looks only.

    Raises:
        ConfigurationError: the directory holds a run already, there is no such checkpoint, it is another recipe's, or
            it lies beyond the last step.
    """
    own = checkpoints.newest_valid(launch.directory / "checkpoints")
    if own and not launch.resume:
        raise ConfigurationError(
            f"{launch.directory} already holds a run, at step {own.step}; "
            "go on with it with --resume, or choose another directory"
        )
    first = checkpoint_at(launch.source, launch.digest) if launch.source else own
    if first is None:
        return Beginning(None)
    elsewhere = first.path.resolve().parent != (launch.directory / "checkpoints").resolve()
    if own and elsewhere:
        raise ConfigurationError(
            f"{launch.directory} holds a run of its own, at step {own.step}; choose another --out to go on from "
            f"{first.path}"
        )
    origin = origin_of(first, recipe, launch.forked)
    if first.step > recipe.budget.max_steps:
        raise ConfigurationError(
            f"{first.path} is of step {first.step}, beyond budget.max_steps {recipe.budget.max_steps}"
        )
    return Beginning(first, origin if elsewhere else None)


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
        body["training_prompts"], body["rows_left_out"] = task.training_count, task.left_out
    return body


def cache_directory(directory: Path) -> Path:
    """Where base models are kept: FORECURVE_CACHE, else `.cache` beside the run's directory."""
    given = os.environ.get("FORECURVE_CACHE")
    return Path(given) if given else directory.resolve().parent / ".cache"


def _train(recipe: Recipe, launch: Launch, local: DirectoryReporter, reporter: Reporter) -> Outcome:
    stop = StopRequest()
    with ExitStack() as stack:
        stop.on_signals()
        weights = base_weights(
            recipe, cache_directory(launch.directory), lambda text: reporter.message(text, step=0, compute=0.0)
        )
        workers = _workers(recipe, weights, launch, stack, stop)
        task = build_task(recipe)
        controller = Controller(
            recipe, workers, reporter, launch.directory, stop, build_order(recipe, task), partial(_texts, task)
        )
        _resume(recipe, controller, launch, local, reporter)
        return controller.run()


def _texts(task: Task, group: Group) -> list[str]:
    return task.texts(group.responses.tokens, group.responses.lengths.tolist())


def _workers(recipe: Recipe, weights: Weights, launch: Launch, stack: ExitStack, stop: StopRequest) -> Workers:
    torch.set_num_threads(launch.threads)
    workers: Workers
    if launch.ray:
        from trainer.workers.ray_actors import RayWorkers, connect

        stack.callback(connect(recipe.resources.cpus))
        stop.on_signals()  # ray.init put its own in place
        workers = RayWorkers(recipe, weights, launch.threads)
    else:
        from trainer.workers.local import LocalWorkers

        workers = LocalWorkers(recipe, weights)
    stack.callback(workers.close)
    return workers


def _resume(recipe: Recipe, controller: Controller, launch: Launch, local: DirectoryReporter, tell: Reporter) -> None:
    beginning = begin(recipe, launch)
    found = beginning.checkpoint
    if found is None:
        if launch.resume:
            local.supersede({})
            tell.message("no valid checkpoint to resume from; starting at step 0", 0, 0.0)
        return
    lost = local.last_compute()
    if beginning.origin:
        record(beginning.origin, launch.directory)
        local.supersede({})
        tell.message(f"begins at step {found.step} of {found.path}", found.step, 0.0)
    else:
        checkpoints.set_aside_newer(found)
        local.supersede(offsets_of(found))
    if code_of(found) != code_versions():
        tell.message(f"goes on with {code_versions()} from a checkpoint of {code_of(found)}", found.step, 0.0)
    if launch.forked:
        controller.fork(found)
    else:
        controller.resume(found, lost)
