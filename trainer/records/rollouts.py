"""Samples of rollouts for reading: a few whole prompts with their answers, cut to a bounded size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainer.curriculum.buffer import Batch
from trainer.types import Group

GROUPS, RESPONSES, CHARACTERS = 2, 4, 4_000
"""Of one batch: groups kept, responses of each, characters of each text."""


def rollout_lines(batch: Batch, text: Callable[[Group], list[str]]) -> list[dict[str, Any]]:
    """One line for each of the first responses of the first groups; `text` gives a group's responses as texts."""
    groups = batch.groups[:GROUPS]
    return [line for group in groups for line in _lines(group, text(group)[:RESPONSES], batch.number)]


def _lines(group: Group, texts: list[str], batch: int) -> list[dict[str, Any]]:
    responses = group.responses
    return [
        {
            "ordinal": group.ordinal,
            "task": group.prompt.task,
            "prompt": group.prompt.text[:CHARACTERS],
            "answer": group.prompt.answer[:CHARACTERS],
            "response": text[:CHARACTERS],
            "tokens": int(responses.lengths[row]),
            "reward": float(group.rewards[row]),
            "passed": bool(group.passed[row]),
            "finished": bool(responses.finished[row]),
            "interrupted": bool(responses.interrupted[row]),
            "staleness": batch - int(responses.versions[row][responses.sampled[row]].min()),
        }
        for row, text in enumerate(texts)
    ]
