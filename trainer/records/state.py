"""A run's state as the files of a checkpoint, and back. No pickle: JSON for numbers, safetensors for arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save
from safetensors.torch import load as load_torch
from safetensors.torch import save as save_torch  # weights may be bfloat16, which numpy has not

from forecurve.recipes import Recipe, RecipeError, diff, load_recipe
from trainer.curriculum.buffer import BufferState
from trainer.errors import CheckpointError
from trainer.records.checkpoint import STATE, Checkpoint
from trainer.records.group_files import groups_as_arrays, groups_as_json, groups_from
from trainer.types import LearnerState, Wave

LEARNER, GROUPS = "learner.safetensors", "groups.safetensors"

Arrays = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunState:
    """All that a resumed run goes on from. Random numbers need no state: they are drawn by ordinal and step.

    `buffer` holds the finished groups that wait, log-probs and versions with them, and the waves under way, which
    are generated again under the same ordinals, prompts and seeds. `order` is the prompt order with its pass-rate
    table, `inputs` are digests (see `inputs`), `verifier` what verifiers counted. `evaluations` are those that
    had not come back: step to (compute, tokens, weights), None for the learner's own. `offsets` are the lengths of the
    run's files of metrics when it was written: what lies beyond is done again.
    """

    step: int
    recipe: Recipe
    learner: LearnerState
    buffer: BufferState
    order: Mapping[str, Any]
    inputs: Mapping[str, str]
    ledger: Mapping[str, float]
    counters: Mapping[str, int]
    verifier: Mapping[str, float]
    evaluations: Mapping[int, tuple[float, int, Arrays | None]]
    offsets: Mapping[str, int]


def to_files(state: RunState) -> dict[str, bytes]:
    """The files of a checkpoint."""
    buffer = state.buffer
    body = {
        "step": state.step,
        "recipe": state.recipe.to_dict(),
        "recipe_digest": state.recipe.digest,
        "code": code_versions(),
        "learner": dict(state.learner.counters),
        "order": state.order,
        "inputs": state.inputs,
        "ledger": state.ledger,
        "counters": state.counters,
        "verifier": state.verifier,
        "evaluations": [[step, compute, tokens] for step, (compute, tokens, _) in sorted(state.evaluations.items())],
        "offsets": state.offsets,
        "batches_taken": buffer.batches_taken,
        "next_ordinal": buffer.next_ordinal,
        "waves": [[wave.minimum_version, wave.items] for wave in buffer.waves],
        "groups": groups_as_json(buffer.groups),
        "dropped": groups_as_json(buffer.dropped),
    }
    weights = {
        _weights_file(step): save_torch({name: _tensor(value) for name, value in weights.items()})
        for step, (*_, weights) in state.evaluations.items()
        if weights is not None
    }
    return weights | {
        STATE: json.dumps(body).encode(),
        LEARNER: save(_contiguous(state.learner.tensors)),
        GROUPS: save(groups_as_arrays([*buffer.groups, *buffer.dropped])),
    }


def from_checkpoint(checkpoint: Checkpoint, recipe: Recipe, fork: bool = False) -> RunState:
    """The state in a checkpoint. A `fork` goes on with another recipe.

    Raises:
        CheckpointError: it was made by another recipe, and a run resumes only as what it was; or it holds something
            else than this trainer writes.
    """
    try:
        body = json.loads(checkpoint.read(STATE))
        if body["recipe_digest"] != recipe.digest and not fork:
            raise CheckpointError(_other_recipe(checkpoint, body, recipe))
        groups = groups_from(body["groups"] + body["dropped"], load(checkpoint.read(GROUPS)))
        finished = len(body["groups"])
        return RunState(
            step=body["step"],
            recipe=recipe,
            learner=LearnerState(load(checkpoint.read(LEARNER)), body["learner"]),
            buffer=BufferState(
                batches_taken=body["batches_taken"],
                next_ordinal=body["next_ordinal"],
                groups=groups[:finished],
                dropped=groups[finished:],
                waves=[Wave(tuple((o, i) for o, i in items), version) for version, items in body["waves"]],
            ),
            order=body["order"],
            inputs=body["inputs"],
            ledger=body["ledger"],
            counters=body["counters"],
            verifier=body["verifier"],
            evaluations={
                step: (compute, tokens, _weights(checkpoint, step)) for step, compute, tokens in body["evaluations"]
            },
            offsets=body["offsets"],
        )
    except (KeyError, ValueError, OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{checkpoint.path} is whole but not a state that this trainer can read ({type(error).__name__}: {error}); "
            "resume it with the trainer that wrote it"
        ) from None


def without_groups(state: RunState, *, from_the_first: bool) -> BufferState:
    """Admission of a fork: all that was not trained on comes again, with the same ordinals; or all prompts do."""
    buffer = state.buffer
    if from_the_first:
        return BufferState(buffer.batches_taken, 0, (), (), ())
    waiting = [group.ordinal for group in [*buffer.groups, *buffer.dropped]]
    waiting += [ordinal for wave in buffer.waves for ordinal in wave.ordinals]
    return BufferState(buffer.batches_taken, min(waiting, default=buffer.next_ordinal), (), (), ())


def offsets_of(checkpoint: Checkpoint) -> dict[str, int]:
    """Lengths of the run's files of metrics when a checkpoint was written."""
    return dict(json.loads(checkpoint.read(STATE))["offsets"])


def code_of(checkpoint: Checkpoint) -> dict[str, str]:
    """Versions of the code that wrote a checkpoint."""
    return dict(json.loads(checkpoint.read(STATE))["code"])


def code_versions() -> dict[str, str]:
    """Versions of all that decides numbers: another one may not give the same bits."""
    return {name: _version(name) for name in ("forecurve", "torch", "numpy", "numba")}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _other_recipe(checkpoint: Checkpoint, body: Mapping[str, Any], recipe: Recipe) -> str:
    try:
        changed = list(diff(load_recipe(body["recipe"]), recipe).items())
        said = ", ".join(f"{path} {before!r} -> {after!r}" for path, (before, after) in changed[:5])
    except RecipeError:
        said = "a recipe of another version"
    return (
        f"{checkpoint.path} belongs to recipe {body['recipe_digest'][:12]}..., not to {recipe.digest[:12]}... "
        f"({said}); "
        "resume with the recipe it was made by, fork it (--fork) into another directory, or start anew"
    )


def _weights_file(step: int) -> str:
    return f"evaluation_{step:06d}.safetensors"


def _weights(checkpoint: Checkpoint, step: int) -> Arrays | None:
    path = checkpoint.path / _weights_file(step)
    return load_torch(path.read_bytes()) if path.exists() else None


def _tensor(value: Any) -> torch.Tensor:
    """Of an array, which may be read-only where an object store holds it, or of a tensor."""
    return value.contiguous() if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value))


def _contiguous(arrays: Arrays) -> dict[str, NDArray[Any]]:
    return {name: np.ascontiguousarray(value) for name, value in arrays.items()}
