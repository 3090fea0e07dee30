"""The doors of the trainer.

    python -m trainer --recipe FILE --out DIR [--engine torch|vllm] [--no-ray] [--resume [DIR]] [--fork DIR] [--dry-run]
    python -m trainer --run [--out DIR] [--fork DIR --digest SHA256]

The first works without any service. The second is a job of the service: it attaches to the run that the environment
names, takes its recipe from there, reports to it and obeys it; with --fork, it begins there until it has a checkpoint
of its own.

SIGTERM or Ctrl-C ends a run with a checkpoint. A terminal that is closed does not end it: see `terminal.py`.

Exit codes: 0 done or stopped on request; 1 failed, with the reason reported; 2 the recipe or the arguments cannot be
used; 75 a worker or its machine was lost, and another attempt may go better; 130 interrupted at once, by a second
Ctrl-C.

What trains is imported where it is needed: torch takes seconds, which arguments that cannot be used need not wait for.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from forecurve.recipes import RecipeError, load_recipe
from trainer.arguments import directory_of, parser, recipe_of
from trainer.errors import ConfigurationError, TrainerError, WorkerLost
from trainer.records.beginning import Launch
from trainer.records.reporting import RunClient
from trainer.terminal import leave, outlive_it, say

DONE, FAILED, REFUSED, LOST, INTERRUPTED = 0, 1, 2, 75, 130
LEAVING_S = 60.0
"""How long the process of the attempt before may take to leave the run's directory."""


def main(arguments: list[str] | None = None) -> int:
    """Parse, run, and turn the end into an exit code."""
    doors = parser()
    given = doors.parse_args(arguments)
    begins = given.resume is not None or given.fork is not None
    if given.run == bool(given.recipe or (begins and not given.run)):
        doors.error("needs either --recipe FILE, --resume or --fork, or --run")
    if given.resume is not None and given.fork is not None:
        doors.error("--resume goes on with a run as it was, --fork from it as another; give one of them")
    if given.digest and not given.fork:
        doors.error("--digest is that of the checkpoint to begin at; name it by --fork")
    if not (given.run or given.out or given.resume or given.dry_run):
        doors.error("needs --out DIR, where the run is written")
    try:
        return _as_job(given) if given.run else _alone(given)
    except RecipeError as error:
        for line in error.lines:
            say(f"error: {line}", sys.stderr)
        return REFUSED
    except ConfigurationError as error:
        say(f"error: {error}", sys.stderr)
        return REFUSED
    except TrainerError as error:
        from trainer.faults import may_go_better

        lost = may_go_better(error)
        say(f"{'lost' if lost else 'failed'}: {error}", sys.stderr)
        return LOST if lost else FAILED
    except KeyboardInterrupt:
        say("interrupted at once; go on from the newest checkpoint with --resume", sys.stderr)
        return INTERRUPTED


def _alone(given: argparse.Namespace) -> int:
    recipe = recipe_of(given)
    if given.dry_run:
        from trainer.checks import check_recipe, describe

        check_recipe(recipe, ray=not given.no_ray)
        say(json.dumps(describe(recipe), indent=2), sys.stdout)
        return DONE
    source = Path(given.fork or given.resume) if given.fork or given.resume else None
    launch = Launch(
        directory_of(given),
        ray=not given.no_ray,
        threads=given.threads,
        resume=given.resume is not None,
        source=source,
        digest=given.digest,
        forked=given.fork is not None,
    )
    from trainer.launch import train

    train(recipe, launch)
    return DONE


def _as_job(given: argparse.Namespace) -> int:
    import trainer.launch  # noqa: F401 - the service hears of the run once it can begin
    from forecurve import client

    directory = given.out or Path(os.environ.get("FORECURVE_OUT") or f".data/runs/{os.environ.get('FORECURVE_RUN')}")
    try:
        run = client.attach(directory)
    except client.ClientError as error:
        raise ConfigurationError(str(error)) from None
    return run_attached(run, directory, given)


def run_attached(run: RunClient, directory: Path, given: argparse.Namespace) -> int:
    """Train what a run of the service asks for. Whatever goes wrong is reported to it as the run's reason."""
    launch = Launch(
        directory,
        ray=not given.no_ray,
        threads=given.threads,
        resume=given.resume is not None or run.attempt > 1,
        source=Path(given.fork) if given.fork else None,
        digest=given.digest,
        forked=given.fork is not None,
        own_first=True,
        attempt=run.attempt,
        wait_s=LEAVING_S,
    )
    from trainer.faults import may_go_better
    from trainer.launch import train

    try:
        recipe = load_recipe(_asked_for(run))
    except (RecipeError, TrainerError) as error:
        run.finish("lost" if may_go_better(error) else "failed", str(error))
        raise
    train(recipe, launch, run)
    return DONE


def _asked_for(run: RunClient) -> dict[str, Any]:
    """The run's recipe. A service that is away is no fault of the run's."""
    from forecurve.client import ApiError

    try:
        return run.recipe()
    except ApiError as error:
        kind = TrainerError if error.is_bad_input else WorkerLost
        raise kind(f"the run's recipe could not be read: {error}") from error


if __name__ == "__main__":
    outlive_it()
    try:
        sys.exit(main())
    finally:
        leave()
