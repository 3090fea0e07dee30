"""The compute of a step that nobody told: read between evaluations, of which it is told."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def spent_at(step: float, steps: Sequence[float], computes: Sequence[float]) -> float | None:
    """What a run had spent at a step, in a straight line between its evaluations and from its beginning to the first.

    None after the last of them, or where there is none: how much was spent since is not known yet.

    Args:
        steps, computes: of the evaluations, rising.

    >>> [spent_at(step, [10, 20], [4.0, 10.0]) for step in (0, 5, 10, 15, 20, 21)]
    [0.0, 2.0, 4.0, 7.0, 10.0, None]
    """
    place = bisect_left(steps, step)
    if place == len(steps):
        return None
    if steps[place] == step:
        return float(computes[place])
    before, spent = (steps[place - 1], computes[place - 1]) if place else (0, 0.0)
    return float(spent + (computes[place] - spent) * (step - before) / (steps[place] - before))
