"""A run's state as the files of a checkpoint, and back. No pickle: JSON for numbers, safetensors for arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from forecurve.recipes import Recipe
from trainer.checkpoint import Checkpoint
from trainer.errors import CheckpointError
from trainer.types import Group, LearnerState, Prompt, Responses

STATE, LEARNER, GROUPS = "state.json", "learner.safetensors", "groups.safetensors"


@dataclass(frozen=True, slots=True)
class RunState:
    """All that a resumed run goes on from. Random numbers need no state: they are drawn by ordinal and step.

    `groups` are the finished groups that wait for their batch, log-probs and versions with them; groups
    in flight are generated again under the same ordinals and seeds.
    """

    step: int
    recipe: Recipe
    learner: LearnerState
    groups: Sequence[Group]
    ledger: dict[str, float]
    counters: dict[str, int]


def to_files(state: RunState) -> dict[str, bytes]:
    """The files of a checkpoint."""
    body = {
        "step": state.step,
        "recipe": state.recipe.to_dict(),
        "recipe_digest": state.recipe.digest,
        "learner": dict(state.learner.counters),
        "ledger": state.ledger,
        "counters": state.counters,
        "groups": [
            [group.ordinal, group.prompt.index, group.prompt.text, group.prompt.answer, group.prompt.task]
            for group in state.groups
        ],
    }
    return {
        STATE: json.dumps(body).encode(),
        LEARNER: save({name: np.ascontiguousarray(value) for name, value in state.learner.tensors.items()}),
        GROUPS: save(_stacked(state.groups)),
    }


def from_checkpoint(checkpoint: Checkpoint, recipe: Recipe) -> RunState:
    """The state in a checkpoint.

    Raises:
        CheckpointError: it was made by another recipe; a run resumes only as what it was.
    """
    body = json.loads(checkpoint.read(STATE))
    if body["recipe_digest"] != recipe.digest:
        raise CheckpointError(
            f"{checkpoint.path} belongs to recipe {body['recipe_digest'][:12]}..., not to {recipe.digest[:12]}...; "
            "resume with the recipe it was made by, or start anew in another directory"
        )
    return RunState(
        step=body["step"],
        recipe=recipe,
        learner=LearnerState(load(checkpoint.read(LEARNER)), body["learner"]),
        groups=_unstacked(body["groups"], load(checkpoint.read(GROUPS))),
        ledger=body["ledger"],
        counters=body["counters"],
    )


def _stacked(groups: Sequence[Group]) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays of all groups together: rows padded to the longest, prompts of any length one after the other."""
    if not groups:
        return {"cost": np.zeros((0, 2))}
    longest = max(group.responses.tokens.shape[1] for group in groups)
    rows = {
        name: np.stack([_wide(getattr(group.responses, name), longest) for group in groups])
        for name in ("tokens", "logprobs", "versions", "sampled")
    }
    whole = {
        name: np.stack([getattr(group.responses, name) for group in groups])
        for name in ("lengths", "finished", "interrupted")
    }
    judged = {name: np.stack([getattr(group, name) for group in groups]) for name in ("rewards", "passed")}
    arrays = rows | whole | judged
    return {name: array.astype(np.uint8) if array.dtype == bool else array for name, array in arrays.items()} | {
        "prompt_tokens": np.concatenate([group.prompt.tokens for group in groups]),
        "prompt_lengths": np.array([len(group.prompt.tokens) for group in groups]),
        "difficulty": np.array([group.prompt.difficulty for group in groups]),
        "cost": np.array([[group.cpu_seconds, group.wall_seconds] for group in groups]),
    }


def _wide(rows: np.ndarray[Any, Any], longest: int) -> np.ndarray[Any, Any]:
    return np.pad(rows, ((0, 0), (0, longest - rows.shape[1])))


def _unstacked(names: Sequence[Sequence[Any]], arrays: dict[str, np.ndarray[Any, Any]]) -> list[Group]:
    ends = np.cumsum(arrays["prompt_lengths"]) if names else np.zeros(0, dtype=np.int64)
    return [_group(name, i, int(ends[i]), arrays) for i, name in enumerate(names)]


def _group(name: Sequence[Any], i: int, end: int, arrays: dict[str, np.ndarray[Any, Any]]) -> Group:
    ordinal, index, text, answer, task = name
    tokens = arrays["prompt_tokens"][end - int(arrays["prompt_lengths"][i]) : end]
    return Group(
        ordinal=ordinal,
        prompt=Prompt(text, answer, tokens, task, float(arrays["difficulty"][i]), index),
        responses=Responses(
            key=ordinal,
            tokens=arrays["tokens"][i],
            logprobs=arrays["logprobs"][i],
            versions=arrays["versions"][i],
            lengths=arrays["lengths"][i],
            finished=arrays["finished"][i].astype(bool),
            sampled=arrays["sampled"][i].astype(bool),
            interrupted=arrays["interrupted"][i].astype(bool),
        ),
        rewards=arrays["rewards"][i],
        passed=arrays["passed"][i].astype(bool),
        cpu_seconds=float(arrays["cost"][i][0]),
        wall_seconds=float(arrays["cost"][i][1]),
    )
