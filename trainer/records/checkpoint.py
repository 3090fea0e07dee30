"""Checkpoints: directories that are whole or not there.

    OUT/checkpoints/step_000050/{manifest.json, state.json, learner.safetensors, groups.safetensors}

A checkpoint is written under `step_000050.tmp`, every file and the directory are flushed to disk, and the directory
is renamed last. The manifest holds sizes and sha256 of the other files; a reader takes only a directory whose
manifest holds true, and falls back to the one before. An older checkpoint is deleted only when a newer one is in place.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.errors import CheckpointError

FORMAT = 1
MANIFEST = "manifest.json"
STATE = "state.json"
"""The file that has the recipe and all that is no tensor."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A valid checkpoint on disk. `digest` is the sha256 of its manifest, which names those of all files."""

    path: Path
    step: int
    digest: str
    size_bytes: int

    def read(self, name: str) -> bytes:
        """One of its files."""
        return (self.path / name).read_bytes()


def write(
    directory: Path,
    step: int,
    files: Mapping[str, bytes],
    keep_last: int,
    keep_every: int | None = None,
    held: Collection[int] = (),
) -> Checkpoint:
    """Write a checkpoint of `step`, then drop older ones: all but the newest `keep_last`, those of every `keep_every`
    steps, and those of steps that are `held`.

    Raises:
        CheckpointError: the disk refused (full, read-only); what was there before still is.
    """
    final = _path(directory, step)
    partial = final.with_name(final.name + ".tmp")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for name, body in files.items():
            _write_flushed(partial / name, body)
        _write_flushed(partial / MANIFEST, _manifest(step, files))
        _flush_directory(partial)
        shutil.rmtree(final, ignore_errors=True)  # only ever an invalid or superseded one of the same step
        partial.rename(final)
        _flush_directory(directory)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise CheckpointError(f"could not write the checkpoint of step {step} to {directory}: {error}") from error
    checkpoint = validated(final)
    if checkpoint is None:
        raise CheckpointError(f"the checkpoint of step {step} in {directory} does not read back as it was written")
    _drop_older(directory, step, keep_last, keep_every, held)
    return checkpoint


def newest_valid(directory: Path) -> Checkpoint | None:
    """The newest checkpoint whose files are what its manifest says; None when there is none."""
    for path in sorted(directory.glob("step_*"), key=_step_of, reverse=True):
        checkpoint = validated(path)
        if checkpoint is not None:
            return checkpoint
    return None


def names(directory: Path) -> list[str]:
    """The checkpoints there, whole or damaged; not those whose writing was cut off."""
    return sorted(path.name for path in directory.glob("step_*") if _step_of(path) >= 0)


def damaged_after(checkpoint: Checkpoint) -> list[str]:
    """Checkpoints of later steps in the same directory that are not whole: what was passed over to come to this one."""
    later = (path for path in checkpoint.path.parent.glob("step_*") if _step_of(path) > checkpoint.step)
    return sorted(path.name for path in later if validated(path) is None)


def set_aside_newer(checkpoint: Checkpoint) -> None:
    """Rename checkpoints of later steps in the same directory to `superseded_step_...`: the run goes on before them.

    They are kept for whoever wants them back; no reader takes them for the run's.
    """
    for path in checkpoint.path.parent.glob("step_*"):
        if _step_of(path) > checkpoint.step:
            aside = path.with_name("superseded_" + path.name)
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)


def validated(path: Path) -> Checkpoint | None:
    """The checkpoint in `path`, or None when it is partial, damaged, or none at all."""
    if path.suffix == ".tmp":
        return None
    try:
        body = (path / MANIFEST).read_bytes()
        manifest = json.loads(body)
        entries: dict[str, dict[str, Any]] = manifest["files"]
        if manifest["format"] != FORMAT or not all(_as_described(path / name, entries[name]) for name in entries):
            return None
        size = len(body) + sum(entry["size"] for entry in entries.values())
        return Checkpoint(path, int(manifest["step"]), hashlib.sha256(body).hexdigest(), size)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _manifest(step: int, files: Mapping[str, bytes]) -> bytes:
    entries = {
        name: {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()} for name, body in sorted(files.items())
    }
    return json.dumps({"format": FORMAT, "step": step, "files": entries}, indent=1).encode()


def _as_described(path: Path, entry: Mapping[str, Any]) -> bool:
    body = path.read_bytes()
    return bool(len(body) == entry["size"]) and bool(hashlib.sha256(body).hexdigest() == entry["sha256"])


def _drop_older(directory: Path, step: int, keep_last: int, keep_every: int | None, held: Collection[int]) -> None:
    """Forget what is not to be kept, and the leftovers of writes that were cut off."""
    steps = sorted(found for path in directory.glob("step_*") if 0 <= (found := _step_of(path)) <= step)
    outdated = [old for old in steps[:-keep_last] if old not in held and (not keep_every or old % keep_every)]
    for path in [*(_path(directory, old) for old in outdated), *directory.glob("step_*.tmp")]:
        shutil.rmtree(path, ignore_errors=True)


def _path(directory: Path, step: int) -> Path:
    return directory / f"step_{step:06d}"


def _step_of(path: Path) -> int:
    digits = path.name.removeprefix("step_")
    return int(digits) if digits.isdigit() else -1


def _write_flushed(path: Path, body: bytes) -> None:
    with path.open("wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())


def _flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
