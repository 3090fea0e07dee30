"""Draws without chance: evenly spread over (0, 1), by a step of its own for each thing that is drawn.

The draws of a posterior lie in the order of their ceilings. What is drawn besides for each of them, the noise of an
evaluation say, must follow neither that order nor anything else that is drawn: with one step two things are functions
of one another. Multiples of a square root, modulo 1, fall evenly (a Kronecker sequence), and those of different primes
fall evenly together. These primes are the eight below 140 whose first 2,000 multiples do so best: no two leave the
share of a rectangle at a corner by more than .008, nor do their normal quantiles, or how large these are, correlate by
more than .016 (chance would by .02).
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..arrays import FloatArray, IntArray
from ..compiled import compiled

EVENLY = 0.8191725133961645, 0.6710436067037893, 0.5497004779019703
"""Powers of 1 / 1.2207..., the root of x^4 = x + 1: steps that spread three coordinates as evenly as steps can. Which
of them serves which was measured."""


class Axis(Enum):
    """What is drawn, and by multiples of what."""

    SCALE = sqrt(2)  # of the noise
    NOISE = sqrt(7)  # of an evaluation
    CELL = sqrt(31)  # where in its cell a node's draw lies
    DRIFT = sqrt(43)
    LAW = sqrt(59)  # of the rise
    LASTS = sqrt(61)  # whether what came after a change goes on
    BETWEEN = sqrt(97)  # where a run ends of which it does not
    PAST = sqrt(131)  # what past forecasts got wrong


def multiples(step: float, index: IntArray, start: float = 0.0) -> FloatArray:
    """A Kronecker sequence: start and these multiples of the step, modulo 1, in [0, 1); (K,)."""
    return np.asarray((start + step * index) % 1.0)


def inside(u: FloatArray) -> FloatArray:
    """The same a little closer together: none within .00005 of 0 or 1, whose normal quantiles are infinite."""
    return np.asarray(u * 0.9999 + 0.00005)


@lru_cache(maxsize=64)
def uniforms(axis: Axis, size: int) -> FloatArray:
    """So many numbers in (0, 1), none within .00005 of an end; (size,)."""
    found = inside(multiples(axis.value, np.arange(size), start=0.5))
    found.flags.writeable = False
    return found


@lru_cache(maxsize=64)
def normals(axis: Axis, size: int) -> FloatArray:
    """The same as standard normal quantiles."""
    found = np.asarray(ndtri(uniforms(axis, size)))
    found.flags.writeable = False
    return found


def picks(cumulative: FloatArray, size: int, u: float = 0.5) -> IntArray:
    """Systematic resampling: where so many even steps through a cumulative weight lie in it, (size,), increasing.

    Args:
        cumulative: the weights' sums, (K,).
        size: how many.
        u: where in its step each lies, 0 to 1.
    """
    found = np.empty(size, dtype=np.int64)
    compiled(_pick_loop, _pick_rows)(cumulative, u, found)
    return found


def _pick_loop(cumulative: Any, u: Any, found: Any) -> None:
    at, last, size = 0, len(cumulative) - 1, len(found)
    for step in range(size):
        reached = (step + u) / size * cumulative[last]
        while at < last and cumulative[at] < reached:
            at += 1
        found[step] = at


def _pick_rows(cumulative: Any, u: Any, found: Any) -> None:
    """`_pick_loop` by bisection."""
    size = len(found)
    places = np.searchsorted(cumulative, (np.arange(size) + u) / size * cumulative[-1])
    found[:] = np.minimum(places, len(cumulative) - 1)
