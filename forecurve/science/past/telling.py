"""Which other runs tell of a run: those that are over, and those that are far enough ahead of it.

Runs at one stage all err to the same side, and a prior of them is too sure. One that is ahead has seen what lies before
this one: at twice the compute, and at half of what this one is to spend, it tells nearly as much as a finished one.
"""

from __future__ import annotations

from ..fitting.outcome import FINISHED_AT

_TELLS_AT = 0.5
"""A run that has spent so much of this one's budget tells of it,"""
_AHEAD = 2.0
"""if it has also spent so many times what this one has."""


def least_to_tell(now: float, budget: float) -> float:
    """The compute that another run must have spent to tell of one that has spent `now` of `budget`.

    >>> [least_to_tell(now, 1000) for now in (100, 250, 400, 800)]
    [500.0, 500.0, 800.0, 900.0]
    """
    return min(FINISHED_AT * budget, max(_TELLS_AT * budget, _AHEAD * now))


def is_finished(went: float, budget: float) -> bool:
    """Whether a run that has spent so much tells how another ends that has this budget."""
    return went >= FINISHED_AT * budget
