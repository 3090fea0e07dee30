"""Which checkpoints of a launched run still lie on disk, by the rule by which its trainer drops the older ones.

The service does not see the disk: it may be another machine's. What is wrong here costs a fork its start, said as such.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple


class Mark(NamedTuple):
    """What tells a checkpoint of a run from its others."""

    id: str
    attempt: int
    step: int


def kept(reported: Iterable[Mark], *, keep_last: int, keep_every: int | None, held: Collection[int]) -> list[Mark]:
    """Those of `reported` (of one run) that its trainer keeps, newest first.

    Args:
        keep_last, keep_every: of the recipe's `checkpoint`.
        held: steps that the trainer was told to leave on disk.
    """
    return [
        checkpoint
        for place, checkpoint in enumerate(_line(reported))
        if place < keep_last or checkpoint.step in held or (keep_every and checkpoint.step % keep_every == 0)
    ]


def _line(reported: Iterable[Mark]) -> list[Mark]:
    """Without what a later attempt superseded: it went on from before these, and wrote their steps again."""
    line: list[Mark] = []
    for checkpoint in sorted(reported, key=lambda each: (each.attempt, each.step), reverse=True):
        if not line or checkpoint.step < line[-1].step:
            line.append(checkpoint)
    return line
