"""Finished groups as JSON and arrays: what a checkpoint holds of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainer.algorithm.batching import padded
from trainer.types import Group, Prompt, Responses


def groups_as_json(groups: Sequence[Group]) -> list[list[Any]]:
    """What is not an array: ordinal, and the prompt's index, text, answer and task."""
    return [[g.ordinal, g.prompt.index, g.prompt.text, g.prompt.answer, g.prompt.task] for g in groups]


def groups_as_arrays(groups: Sequence[Group]) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of all groups together: rows padded to the longest, prompts of any length one after the other."""
    if not groups:
        return {"cost": np.zeros((0, 2))}
    longest = max(group.responses.tokens.shape[1] for group in groups)
    rows = {
        name: np.stack([padded(getattr(group.responses, name), longest) for group in groups])
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


def groups_from(names: Sequence[Sequence[Any]], arrays: dict[str, np.ndarray[Any, Any]]) -> list[Group]:
    """Groups from what `groups_as_json` and `groups_as_arrays` made of them."""
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
