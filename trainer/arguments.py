"""The trainer's command line: its flags, and the recipe that they name."""

from __future__ import annotations

import argparse
from pathlib import Path

from forecurve.recipes import PRESETS, Recipe, RecipeError, load_recipe, preset, with_changes
from forecurve.recipes.given import read_changes, read_yaml
from trainer.records.origin import checkpoint_at, recipe_at

_EXAMPLES = """\
examples:
  python -m trainer --recipe preset:scalerl --out runs/a --no-ray
      ScaleRL on the testbed in this process, deterministic: metrics.jsonl, evaluations.jsonl, checkpoints/
  python -m trainer --recipe preset:scalerl --dry-run --set algorithm.loss=dapo
      the resolved recipe and what it amounts to; nothing is trained
  python -m trainer --resume runs/a --no-ray
      go on from the newest checkpoint in runs/a, with the recipe it was made by
  python -m trainer --resume runs/a/checkpoints/step_000100 --no-ray
      go on from step 100; later checkpoints are set aside, later metrics dropped
  python -m trainer --fork runs/a --out runs/b --no-ray --set optimizer.learning_rate=1e-4
      go on from runs/a with a changed recipe; runs/b/origin.json names the parent and the changes. Steps and compute
      count on, so a run that is at its end needs --set budget.compute=... too

SIGTERM or Ctrl-C ends a run with a checkpoint; a terminal that is closed does not end it.

exit codes: 0 done or stopped on request, 1 failed, 2 the recipe or the arguments cannot be used,
75 a worker or its machine was lost: try again with --resume, 130 interrupted twice
"""


def parser() -> argparse.ArgumentParser:
    """All flags of `python -m trainer`."""
    made = argparse.ArgumentParser(
        prog="python -m trainer",
        description="Run one RL training recipe.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--recipe", metavar="FILE", help="JSON or YAML file, or preset:NAME")
    made.add_argument("--run", action="store_true", help="report to the service whose job this is")
    made.add_argument("--out", type=Path, metavar="DIR", help="where the run is written; with --resume DIR: there")
    made.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="replace a field of the recipe")
    made.add_argument("--engine", choices=("torch", "vllm"), help="what generates: short for --set generation.engine=")
    made.add_argument("--no-ray", action="store_true", help="everything in this process, deterministic")
    made.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="DIR",
        help="go on from this checkpoint or the newest valid one of this run (without DIR: of --out), with the same "
        "recipe; written to the run itself, or to --out",
    )
    made.add_argument("--fork", metavar="DIR", help="go on from this checkpoint or run with a changed recipe")
    made.add_argument("--digest", metavar="SHA256", help="with --fork: of its manifest; begin at no other checkpoint")
    made.add_argument("--dry-run", action="store_true", help="print the resolved recipe and what it amounts to")
    made.add_argument("--threads", type=_threads, default=1, help="torch threads of every worker (default 1)")
    return made


def _threads(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of threads; give 1 or more")
    return int(text)


def recipe_of(given: argparse.Namespace) -> Recipe:
    """The recipe that the arguments name: --recipe, else that of the checkpoint to go on from; then --set.

    Raises:
        RecipeError: a file, preset or field that cannot be used.
        ConfigurationError: no checkpoint to take a recipe from.
    """
    if given.recipe:
        recipe = read_recipe(given.recipe)
    else:
        recipe = recipe_at(checkpoint_at(Path(given.fork or given.resume or given.out or ".")))
    changes = read_changes(given.set)
    if given.engine:
        changes["generation.engine"] = given.engine
    return with_changes(recipe, changes)


def directory_of(given: argparse.Namespace) -> Path:
    """Where the run is written: --out, else the run that --resume names.

    Raises:
        ConfigurationError: no valid checkpoint to resume from.
    """
    if given.out:
        return Path(given.out)
    return checkpoint_at(Path(given.resume)).path.parent.parent


def read_recipe(source: str) -> Recipe:
    """A recipe from a JSON or YAML file, or from `preset:NAME`.

    Raises:
        RecipeError: no such file or preset, not JSON or YAML, or a recipe that cannot be used.
    """
    if source.startswith("preset:"):
        return preset(source.removeprefix("preset:"))
    if source in PRESETS and not Path(source).exists():
        raise RecipeError.one("--recipe", source, f"there is no such file; the preset is preset:{source}")
    return load_recipe(read_yaml(Path(source)))
