"""Smooth, but no sigmoid: how far other smooth curves that describe a run better would lead it elsewhere.

A run that saturates as an exponential does, or whose growth is two sigmoids in one another, departs from one sigmoid
gently and everywhere. A ramp or a step at the right place describes some of that as well, so that without a gentle
rival such a run is said to have broken. The rivals are the best sigmoid + delta x another smooth rise, at several
places, in either direction: a logistic in log compute that is no steeper than sigmoids are, or an exponential's
1 - exp(-C / tau). What they explain no sharp change need explain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..arrays import FloatArray
from ..posterior.drawing import Posterior
from ..posterior.sigmoid import reward_at, rise
from .drift import DRIFT_SD
from .extension import Extended, NullModel

_GROUPS = 3  # places apart from one another, each the best of its neighbours
_PLACES = 15
_ALIKE = 6.0  # twice the log likelihood ratio within which rivals are as good as the best
_HORIZON = 2.0  # times the present compute, where rivals are compared with the sigmoid
_REACH = 0.95
_HEAVY = 2.92  # of Student's t with 2 degrees of freedom, the drift's law, the same quantile


Rises = Callable[[FloatArray, FloatArray], FloatArray]


def logistic(log_compute: FloatArray, centres: FloatArray, slope: float) -> FloatArray:
    """Steps up in log compute about each centre, shape (N, T)."""
    return np.asarray(1 / (1 + np.exp(np.clip(slope * (centres - log_compute[:, None]), -700.0, 700.0))))


def exponential(log_compute: FloatArray, centres: FloatArray) -> FloatArray:
    """1 - exp(-C / tau) with tau = exp(centre), shape (N, T)."""
    return np.asarray(-np.expm1(-np.exp(np.minimum(log_compute[:, None] - centres, 700.0))))


_LOGISTIC: tuple[tuple[Rises, float], ...] = tuple((partial(logistic, slope=one), one) for one in (1.0, 2.0, 4.0))
# an exponential's slope is steepest where a logistic's of 4 / e would be as steep
_FAMILIES = (*_LOGISTIC, (exponential, 4 / np.e))


@dataclass(frozen=True)
class Rise:
    """One of the two rises of a curve: its slope and middle in log compute, and its height."""

    slope: float
    centre: float
    height: float


@dataclass(frozen=True, eq=False)
class Rival:
    """The best sigmoid + delta x one smooth rise about a place in log compute."""

    found: Extended
    rises: Rises
    slope: float
    centre: float

    @property
    def in_turn(self) -> tuple[Rise, Rise]:
        """The sigmoid and the other rise, the earlier one first."""
        log_b, log_mid = self.found.node
        sigmoid = Rise(float(np.exp(log_b)), float(log_mid), self.found.height)
        other = Rise(self.slope, self.centre, self.found.delta)
        return (sigmoid, other) if sigmoid.centre < other.centre else (other, sigmoid)

    def beyond(self, null: NullModel, log_compute: float) -> float:
        """Its value at a later compute, in the scale where rewards lie in [0, 1]."""
        place = np.array([float(null.problem.log_c[-1]), log_compute])
        g = rise(place, self.found.node[:1], self.found.node[1:])[:, 0]
        other = self.rises(place, np.array([self.centre]))[:, 0]
        further = self.found.height * (g[1] - g[0]) + self.found.delta * (other[1] - other[0])
        return float(np.clip(self.found.values[-1] + further, 0.0, 1.0))


def rivals(null: NullModel, centres: tuple[float, float]) -> list[Rival]:
    """The best rival of every family and part of the run, the best of all first.

    Args:
        null: of the curve's best sigmoid with extensions of it.
        centres: the least and the largest log compute about which a rival may rise or fall.
    """
    places = np.linspace(*centres, _PLACES)
    found = list(_each(null, places))
    return sorted(found, key=lambda rival: -rival.found.ratio)


def _each(null: NullModel, places: FloatArray) -> Iterator[Rival]:
    for rises, slope in _FAMILIES:
        for part in np.array_split(places, _GROUPS):
            columns = rises(null.problem.log_c, part)
            best = null.extend(columns, signs=np.zeros(len(part)))
            yield Rival(best, rises, slope, float(part[best.column]))


def widening(null: NullModel, posterior: Posterior, ranked: list[Rival]) -> float:
    """How many times as wide the sigmoid's 90 % interval at twice the compute must be to hold where rivals lead.

    Rivals that agree with one another prove little: they are sigmoids beyond the data too. So it is at least what runs
    are known to leave their sigmoid by (`drift`).
    """
    at = float(null.problem.log_c[-1] + np.log(_HORIZON))
    place = np.exp(np.array([at]))
    draws = reward_at(place, posterior.A, posterior.B, posterior.C_mid, posterior.R0)[0]
    lower, middle, upper = np.quantile(draws, (1 - _REACH, 0.5, _REACH))
    best = ranked[0].found.ratio
    ends = [rival.beyond(null, at) for rival in ranked if rival.found.ratio > best - _ALIKE]
    farthest = max(ends, key=lambda end: abs(end - middle))
    half = upper - middle if farthest > middle else middle - lower
    return float(max(abs(farthest - middle), DRIFT_SD * np.log(_HORIZON) * _HEAVY) / max(half, 1e-9))
