"""What a run comes from that begins at a checkpoint.

A run that begins at another's checkpoint records it in OUT/origin.json, before its first step: the parent's
checkpoint with its digest, both recipes' digests, and the fields that the fork changes.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from forecurve.recipes import Recipe, RecipeError, diff, load_recipe, other_weights
from trainer.errors import CheckpointError, ConfigurationError
from trainer.records import checkpoint as checkpoints
from trainer.records.checkpoint import STATE, Checkpoint

ORIGIN = "origin.json"


@dataclass(frozen=True, slots=True)
class Origin:
    """The parent of a run. `changes`: dotted field to (the parent's, this run's) value; empty without a fork."""

    parent: str
    step: int
    checkpoint_digest: str
    parent_recipe_digest: str
    recipe_digest: str
    changes: dict[str, tuple[Any, Any]]


def checkpoint_at(path: Path, digest: str | None = None) -> Checkpoint:
    """The checkpoint that `path` names: a checkpoint's own directory, or a run's, whose newest valid one it is.

    Raises:
        ConfigurationError: there is no valid checkpoint, or none with that `digest`.
    """
    if digest is not None:
        return _exactly(path, digest)
    if not path.is_dir():
        raise ConfigurationError(f"{path} is no directory; give a run's directory or one of its checkpoints")
    found = checkpoints.validated(path) or checkpoints.newest_valid(path / "checkpoints")
    if found is None:
        raise ConfigurationError(
            f"{path} holds no valid checkpoint; give the directory of a run, or one of its checkpoints/step_*"
        )
    return found


def _exactly(path: Path, digest: str) -> Checkpoint:
    found = checkpoints.validated(path)
    if found is None:
        raise ConfigurationError(
            f"{path}, the checkpoint to begin at, is gone or damaged; fork from one that its run still has"
        )
    if found.digest != digest:
        raise ConfigurationError(
            f"{path} is another checkpoint by now (digest {found.digest[:12]}..., not {digest[:12]}...): its run wrote "
            "that step again; fork anew"
        )
    return found


def origin_of(checkpoint: Checkpoint, recipe: Recipe, forked: bool) -> Origin:
    """What a run of `recipe` that begins at `checkpoint` comes from.

    Raises:
        ConfigurationError: the recipes differ and it is not `forked`, or they differ in what the weights are; the
            fields are named.
    """
    parent = recipe_at(checkpoint)
    changes = diff(parent, recipe)
    if changes and not forked:
        raise ConfigurationError(
            f"the recipe differs from that of {checkpoint.path} in {_named(changes)}; resume with the same recipe, "
            "or go on from it in a new directory with --fork"
        )
    if unfit := other_weights(parent, recipe):
        raise ConfigurationError(
            f"the weights of {checkpoint.path} are of another model: {_named(unfit)}; leave these fields as they were, "
            "or start a new run"
        )
    location = str(checkpoint.path.resolve())
    return Origin(location, checkpoint.step, checkpoint.digest, parent.digest, recipe.digest, changes)


def _named(changes: dict[str, tuple[Any, Any]]) -> str:
    return ", ".join(f"{path} {theirs!r} -> {ours!r}" for path, (theirs, ours) in changes.items())


def record(origin: Origin, directory: Path) -> None:
    """Write `origin` into the run's directory; a reader never sees half a file."""
    directory.mkdir(parents=True, exist_ok=True)
    partial = directory / (ORIGIN + ".tmp")
    partial.write_text(json.dumps(asdict(origin), indent=1) + "\n")
    partial.replace(directory / ORIGIN)


def recorded(directory: Path) -> str | None:
    """Digest of the other run's checkpoint that the run in `directory` began at; None when there is none."""
    try:
        return str(json.loads((directory / ORIGIN).read_text())["checkpoint_digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def recipe_at(checkpoint: Checkpoint) -> Recipe:
    """The recipe that a checkpoint was made by.

    Raises:
        CheckpointError: it holds none, or one of another version.
    """
    try:
        return load_recipe(json.loads(checkpoint.read(STATE))["recipe"])
    except (KeyError, ValueError, RecipeError) as error:
        raise CheckpointError(f"{checkpoint.path} holds no recipe that this version can read: {error}") from None
