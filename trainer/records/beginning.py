"""Where a run begins: at step 0, at a checkpoint of its own, or at another run's; and when it must not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forecurve.recipes import Recipe
from trainer.errors import ConfigurationError
from trainer.records import checkpoint as checkpoints
from trainer.records.checkpoint import Checkpoint
from trainer.records.directory import holds_lines
from trainer.records.origin import Origin, checkpoint_at, origin_of, recorded


@dataclass(frozen=True, slots=True)
class Launch:
    """How to run: `ray` actors or this process, torch threads a worker, and where to begin.

    `resume`: go on from the newest checkpoint in `directory`, if there is one. `source`: begin at this checkpoint, or
    at the newest one of this run's directory; `digest`: and at no other than the one with this digest. `forked` allows
    another recipe than its own. `own_first`: the newest checkpoint in `directory` goes before `source`, and is no fork.
    `attempt`: its number; None for one more than the last. `wait_s`: how long another process may take to leave.
    """

    directory: Path
    ray: bool = True
    threads: int = 1
    resume: bool = False
    source: Path | None = None
    digest: str | None = None
    forked: bool = False
    own_first: bool = False
    attempt: int | None = None
    wait_s: float = 0.0
    progress: bool = True


@dataclass(frozen=True, slots=True)
class Beginning:
    """The checkpoint that a run begins at (None: step 0), where it comes from when that is another run's, and whether
    it goes on as that run or as a fork of it."""

    checkpoint: Checkpoint | None
    origin: Origin | None = None
    forked: bool = False

    @property
    def step(self) -> int:
        """The step that it begins at."""
        return self.checkpoint.step if self.checkpoint else 0


def begin(recipe: Recipe, launch: Launch) -> Beginning:
    """Where the run begins. Looks only.

    Raises:
        ConfigurationError: the directory holds a run already, there is no such checkpoint, it is another recipe's, or
            it lies beyond the last step.
    """
    directory, source = launch.directory, launch.source
    own = checkpoints.newest_valid(directory / "checkpoints")
    _refuse_lost(directory, own)
    if not launch.resume:
        _refuse_used(directory, own, begins_elsewhere=source is not None)
    if source is None or (own and (launch.own_first or _same(source, directory))):
        first, forked = own, False
    else:
        first, forked = checkpoint_at(source, launch.digest), launch.forked
    if first is None:
        return Beginning(None)
    elsewhere = not _same(first.path.parent, directory / "checkpoints")
    if elsewhere:
        _refuse_other(directory, own, first)
    origin = origin_of(first, recipe, forked)
    if first.step > recipe.budget.max_steps:
        raise ConfigurationError(
            f"{first.path} is of step {first.step}, beyond budget.max_steps {recipe.budget.max_steps}"
        )
    return Beginning(first, origin if elsewhere else None, forked)


def _refuse_lost(directory: Path, own: Checkpoint | None) -> None:
    """Checkpoints without a whole one among them: to begin anew would throw away a run that may be mended."""
    if own is None and (found := checkpoints.names(directory / "checkpoints")):
        raise ConfigurationError(
            f"{directory} holds a run whose checkpoints are all damaged ({', '.join(found)}); bring one back, choose "
            "another directory, or remove this one"
        )


def _refuse_used(directory: Path, own: Checkpoint | None, begins_elsewhere: bool) -> None:
    if own:
        raise ConfigurationError(
            f"{directory} already holds a run, at step {own.step}; "
            "go on with it with --resume, or choose another directory"
        )
    if holds_lines(directory):
        over = "" if begins_elsewhere else "start it over with --resume --recipe FILE, "
        raise ConfigurationError(
            f"{directory} already holds a run, which has no checkpoint yet; {over}choose another directory, or "
            "remove this one"
        )


def _refuse_other(directory: Path, own: Checkpoint | None, first: Checkpoint) -> None:
    """A run of its own gives way to another's checkpoint only where it began there and has none yet."""
    if own is None and (not holds_lines(directory) or recorded(directory) == first.digest):
        return
    at = f"at step {own.step}" if own else "which has no checkpoint yet"
    raise ConfigurationError(
        f"{directory} holds a run of its own, {at}; choose another --out to go on from {first.path}"
    )


def _same(path: Path, other: Path) -> bool:
    return path.resolve() == other.resolve()
