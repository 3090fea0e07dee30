"""The doors of the trainer.

    python -m trainer --recipe FILE --out DIR [--no-ray] [--resume] [--dry-run]    without any service
    python -m trainer --run [--out DIR]                                            as a job of the service

The first takes a recipe from a JSON or YAML file (or `preset:NAME`), with single fields replaced by
`--set algorithm.loss=dapo`. The second attaches to the run that the environment names, takes its recipe from there,
reports to it and obeys it.

Exit codes: 0 done or stopped on request; 1 failed, with the reason reported; 2 the recipe or the arguments cannot be
used.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import yaml

from forecurve.recipes import Recipe, RecipeError, load_recipe, preset, with_changes
from trainer.errors import ConfigurationError, TrainerError
from trainer.launch import Launch, check, describe, train
from trainer.reporting import RunClient

DONE, FAILED, REFUSED = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Parse, run, and turn the end into an exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.run == bool(given.recipe):
        parser.error("needs either --recipe FILE or --run")
    if given.recipe and not given.out and not given.dry_run:
        parser.error("--recipe needs --out DIR, where the run is written")
    try:
        return _as_job(given) if given.run else _alone(given)
    except RecipeError as error:
        for fault in error.problems:
            print(f"error: {fault['field']} = {fault['value']!r}: {fault['message']}", file=sys.stderr)
        return REFUSED
    except ConfigurationError as error:
        print(f"error: {error}", file=sys.stderr)
        return REFUSED
    except TrainerError as error:
        print(f"failed: {error}", file=sys.stderr)
        return FAILED


def _alone(given: argparse.Namespace) -> int:
    recipe = with_changes(read_recipe(given.recipe), dict(map(_assignment, given.set)))
    if given.dry_run:
        print(json.dumps(describe(recipe), indent=2))
        return DONE
    attempt = 2 if given.resume else 1
    train(recipe, Launch(given.out, ray=not given.no_ray, threads=given.threads, resume=given.resume, attempt=attempt))
    return DONE


def _as_job(given: argparse.Namespace) -> int:
    from forecurve import client

    directory = given.out or Path(os.environ.get("FORECURVE_OUT") or f".data/runs/{os.environ.get('FORECURVE_RUN')}")
    return run_attached(client.attach(directory), directory, given)


def run_attached(run: RunClient, directory: Path, given: argparse.Namespace) -> int:
    """Train what a run of the service asks for. Whatever goes wrong is reported to it as the run's reason."""
    launch = Launch(
        directory,
        ray=not given.no_ray,
        threads=given.threads,
        resume=given.resume or run.attempt > 1,
        attempt=run.attempt,
        progress=True,
    )
    try:
        recipe = load_recipe(run.recipe())
        check(recipe, launch)
    except (RecipeError, ConfigurationError) as error:
        run.finish("failed", str(error))
        raise
    train(recipe, launch, run)
    return DONE


def read_recipe(source: str) -> Recipe:
    """A recipe from a JSON or YAML file, or from `preset:NAME`.

    Raises:
        RecipeError: no such file or preset, not JSON or YAML, or a recipe that cannot be used.
    """
    if source.startswith("preset:"):
        return preset(source.removeprefix("preset:"))
    try:
        body = yaml.safe_load(Path(source).read_text())  # JSON is YAML
    except OSError as error:
        raise RecipeError.one("--recipe", source, f"cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RecipeError.one("--recipe", source, f"is neither JSON nor YAML: {' '.join(str(error).split())}") from None
    return load_recipe(body)


def _assignment(text: str) -> tuple[str, Any]:
    path, mark, value = text.partition("=")
    if not mark:
        raise RecipeError.one("--set", text, "needs the form field=value, as in algorithm.loss=dapo")
    return path, yaml.safe_load(value)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer", description="Run one RL training recipe.")
    parser.add_argument("--recipe", metavar="FILE", help="JSON or YAML file, or preset:NAME")
    parser.add_argument("--run", action="store_true", help="report to the service whose job this is")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where metrics and checkpoints are written")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="replace a field")
    parser.add_argument("--no-ray", action="store_true", help="everything in this process, deterministic")
    parser.add_argument("--resume", action="store_true", help="go on from the newest valid checkpoint in --out")
    parser.add_argument("--dry-run", action="store_true", help="print the resolved recipe and what it amounts to")
    parser.add_argument("--threads", type=int, default=1, help="torch threads of every worker (default 1)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
