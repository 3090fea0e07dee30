"""From a recipe and a directory to a finished run: base weights, workers, reporters, controller, how it ended."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import torch

from forecurve.recipes import Recipe
from trainer.base_weights.weights import Weights, base_weights
from trainer.checks import check_recipe
from trainer.controller import Controller, Outcome
from trainer.curriculum.prompts import build_order
from trainer.errors import CheckpointError, StopAsked, TrainerError, WorkerLost
from trainer.faults import may_go_better
from trainer.records import checkpoint as checkpoints
from trainer.records.beginning import Beginning, Launch, begin
from trainer.records.directory import DirectoryReporter
from trainer.records.inputs import digests
from trainer.records.origin import record
from trainer.records.progress import Progress
from trainer.records.reporting import ClientReporter, Reporter, Reporters, RunClient
from trainer.records.run_lock import writing
from trainer.records.state import code_of, code_versions, offsets_of
from trainer.stopping import StopRequest
from trainer.tasks import Task, build_task
from trainer.types import Group
from trainer.workers import Workers

__all__ = ["Launch", "train"]


def train(recipe: Recipe, launch: Launch, client: RunClient | None = None) -> Outcome:
    """Run a recipe to its end and report how it went.

    Raises:
        ConfigurationError: before anything was started: this machine or directory cannot run this recipe.
        WorkerLost: another attempt may go better; already reported as `lost`, with the reason.
        TrainerError: the run failed, or the disk kept nothing of it; already reported as such, with the reason.
    """
    service = [ClientReporter(client)] if client else []
    reporter, local = Reporters(*service), None
    with ExitStack() as stack:
        try:
            check_recipe(recipe, launch.ray)
            stack.enter_context(writing(launch.directory, launch.wait_s))
            beginning = begin(recipe, launch)
            local = DirectoryReporter(
                launch.directory, launch.attempt, Progress(recipe.budget) if launch.progress else None
            )
            reporter = Reporters(local, *service)
            outcome = _train(recipe, launch, beginning, local, reporter)
            local.settle()
        except StopAsked as asked:
            outcome = Outcome("stopped", f"{asked} (before it began)", beginning.step, 0.0)
        except KeyboardInterrupt:
            reporter.finish("stopped", "interrupted at once; what was done since the newest checkpoint is lost")
            raise
        except Exception as error:
            reason = str(error) if isinstance(error, TrainerError) else f"{type(error).__name__}: {error}"
            if may_go_better(error):
                reason = local.lost(reason) if local else reason
                reporter.finish("lost", reason)
                raise WorkerLost(reason) from error
            reporter.finish("failed", reason)
            raise
        reporter.finish(outcome.outcome, outcome.reason)
        return outcome


def cache_directory(directory: Path) -> Path:
    """Where base models are kept: FORECURVE_CACHE, else `.cache` beside the run's directory."""
    given = os.environ.get("FORECURVE_CACHE")
    return Path(given) if given else directory.resolve().parent / ".cache"


def _train(
    recipe: Recipe, launch: Launch, beginning: Beginning, local: DirectoryReporter, reporter: Reporter
) -> Outcome:
    stop = StopRequest()
    with ExitStack() as stack:
        stop.on_signals()
        weights = base_weights(
            recipe, cache_directory(launch.directory), lambda text: reporter.notice(text, step=0, compute=0.0)
        )
        workers = _workers(recipe, weights, launch, stack, stop, beginning.step, reporter)
        task = build_task(recipe)
        controller = Controller(
            recipe,
            workers,
            reporter,
            launch.directory,
            stop,
            build_order(recipe, task),
            partial(_texts, task),
            digests(recipe, task, weights),
        )
        _go_on(controller, beginning, launch, local, reporter)
        return controller.run()


def _texts(task: Task, group: Group) -> list[str]:
    return task.texts(group.responses.tokens, group.responses.lengths.tolist())


def _workers(
    recipe: Recipe, weights: Weights, launch: Launch, stack: ExitStack, stop: StopRequest, step: int, reporter: Reporter
) -> Workers:
    torch.set_num_threads(launch.threads)
    workers: Workers
    if launch.ray:
        from trainer.workers.ray_actors import RayWorkers, connect, in_a_cluster, placed

        stack.callback(connect(recipe.resources.cpus))
        stop.on_signals()  # ray.init put its own in place
        room = placed(
            recipe,
            lambda: stop() or reporter.stop_reason,
            lambda text: reporter.notice(text, step, 0.0),
            may_grow=in_a_cluster(),
        )
        workers = RayWorkers(recipe, weights, stack.enter_context(room), launch.threads)
    else:
        from trainer.workers.local import LocalWorkers

        workers = LocalWorkers(recipe, weights)
    stack.callback(workers.close)
    return workers


def _go_on(
    controller: Controller, beginning: Beginning, launch: Launch, local: DirectoryReporter, tell: Reporter
) -> None:
    """Bring the controller and the directory to where the run begins. A refusal leaves the directory as it was."""
    found = beginning.checkpoint
    damaged = checkpoints.damaged_after(found) if found is not None else []
    if found is not None:
        (controller.fork if beginning.forked else controller.resume)(found)
    try:
        spent = _supersede(beginning, launch, local)
    except OSError as error:
        raise CheckpointError(f"{launch.directory} cannot be written: {error}; free the disk and start again") from None
    if found is None:
        if launch.resume:
            tell.notice("no checkpoint to resume from; starting at step 0", 0, 0.0)
    else:
        if beginning.origin:
            tell.notice(f"begins at step {found.step} of {found.path}", found.step, 0.0)
        if damaged:
            tell.notice(f"goes on from step {found.step}: {', '.join(damaged)} is damaged", found.step, 0.0)
        if code_of(found) != code_versions():
            tell.notice(f"goes on with {code_versions()} from a checkpoint of {code_of(found)}", found.step, 0.0)
    controller.account_for(spent)


def _supersede(beginning: Beginning, launch: Launch, local: DirectoryReporter) -> float:
    """Drop what will be done again; device-seconds that all attempts so far have spent."""
    found = beginning.checkpoint
    if found is None:
        return local.begin(0, {})
    if beginning.origin:
        record(beginning.origin, launch.directory)
        return local.begin(found.step, {})
    checkpoints.set_aside_newer(found)
    return local.begin(found.step, offsets_of(found))
