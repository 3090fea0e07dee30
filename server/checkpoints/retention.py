"""Which checkpoints of a launched run still lie on disk, by the rule by which its trainer drops the older ones.

The service does not see the disk: it may be another machine's. What is wrong here costs a fork its start, said as such.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from .models import Checkpoint


def kept(
    reported: Iterable[Checkpoint], *, keep_last: int, keep_every: int | None, held: Collection[int]
) -> list[Checkpoint]:
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


def _line(reported: Iterable[Checkpoint]) -> list[Checkpoint]:
    """Without what a later attempt superseded: it went on from before these, and wrote their steps again."""
    line: list[Checkpoint] = []
    for checkpoint in sorted(reported, key=lambda each: (each.attempt, each.step), reverse=True):
        if not line or checkpoint.step < line[-1].step:
            line.append(checkpoint)
    return line
