"""Which other runs tell of a run: those that are over, those that are far ahead of it, and later those beside it.

Early on runs at one stage all err to the same side, and a prior of them is too sure. One that is far ahead has seen
what lies before this one: at twice the compute, and at half of what this one is to spend, it tells nearly as much as a
finished one. From a quarter of its budget on those beside it tell as well, while few are finished
(docs/decisions/0070).
"""

from __future__ import annotations

from ..fitting.outcome import FINISHED_AT
from ..posterior.prior import TELLING_RUNS

_TELLS_AT = 0.5
"""A run that has spent so much of this one's budget tells of it,"""
_AHEAD = 2.0
"""if it has also spent so many times what this one has."""
_BESIDE_AT = 0.25
"""Once this one has spent so much of its budget, those beside it tell of it:"""
_BESIDE = 0.9
"""those that have spent so many times what it has. Two that go on together are not always looked at together."""


def least_to_tell(now: float, budget: float, finished: int) -> float:
    """The compute that another run must have spent to tell of one that has spent `now` of `budget`, where so many are
    finished.

    >>> [least_to_tell(now, 1000, finished=0) for now in (100, 240, 250, 400, 800)]
    [500.0, 500.0, 225.0, 360.0, 720.0]
    >>> least_to_tell(250, 1000, finished=3)
    500.0
    """
    far, beside = least_far_ahead(now, budget), now >= _BESIDE_AT * budget and finished < TELLING_RUNS
    return min(far, _BESIDE * now) if beside else far


def least_far_ahead(now: float, budget: float) -> float:
    """The compute that another run must have spent to be far ahead of one that has spent `now` of `budget`.

    >>> [least_far_ahead(now, 1000) for now in (100, 250, 400, 800)]
    [500.0, 500.0, 800.0, 900.0]
    """
    return min(FINISHED_AT * budget, max(_TELLS_AT * budget, _AHEAD * now))


def is_finished(went: float, budget: float) -> bool:
    """Whether a run that has spent so much tells how another ends that has this budget."""
    return went >= FINISHED_AT * budget
