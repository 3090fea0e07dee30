"""Differences in reward that matter, by default: shares of the range of rewards, whose scale then changes no answer."""

from __future__ import annotations

from ..arrays import FloatArray
from ..checks import as_float
from .curve import Curve

SURE = 0.9
"""How sure it has to be that a gain is too small to matter, for nothing more to be spent on it."""

LEAST_GAIN = 0.01
"""Of the range: the least gain, or difference, that matters."""
SETTLED = 0.1
"""Of the least gain that matters: an expected regret of choosing an arm now that is not worth another look."""
SAME_CEILING = 0.02
"""Of the range: ceilings closer than this are the same in practice (the paper's margin of A)."""


def least_gain(given: float | None, curve: Curve) -> float:
    """What was given, in the reward's own scale, else the default for that curve.

    >>> least_gain(None, Curve([1, 2, 4], [20, 30, 35], bounds=(0, 100)))
    1.0
    """
    return LEAST_GAIN * curve.width if given is None else as_float(given)


def surely_below(gain: FloatArray, delta: float) -> bool:
    """Whether draws of a gain, (S,), are as sure to be below delta as it takes to do without it."""
    return float((gain < delta).mean()) >= SURE
