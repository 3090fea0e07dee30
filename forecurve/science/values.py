"""Small values that results are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import FloatArray

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
SDS_TO_A_SIDE = 1.6448536269514722
"""A normal's 90 % interval reaches so many standard deviations to either side."""

_PLACES = 500  # that are drawn at a time


@dataclass(frozen=True)
class Estimate:
    """A posterior median with its 90 % interval."""

    median: float
    lower: float
    upper: float

    def to_dict(self) -> dict[str, float | None]:
        """JSON-safe: None stands for an infinite end."""
        return {"median": finite(self.median), "lower": finite(self.lower), "upper": finite(self.upper)}

    @property
    def width(self) -> float:
        """Width of the 90 % interval."""
        return self.upper - self.lower

    def widened(self, factor: float, bounds: tuple[float, float]) -> Estimate:
        """The interval `factor` times as wide about its median, within `bounds`."""
        lower = max(self.median - factor * (self.median - self.lower), bounds[0])
        return Estimate(self.median, lower, min(self.median + factor * (self.upper - self.median), bounds[1]))


@dataclass(frozen=True)
class Reach:
    """Compute at which a target is reached. An end is infinite where that share of the posterior never reaches it.

    `p_by_budget` is the probability that it is reached by the budget, None where none was given.
    """

    target: float
    median: float
    lower: float
    upper: float
    p_never: float
    p_by_budget: float | None = None

    def to_dict(self) -> dict[str, float | None]:
        """JSON-safe: None stands for never."""
        return {
            "target": self.target,
            "median": finite(self.median),
            "lower": finite(self.lower),
            "upper": finite(self.upper),
            "p_never": self.p_never,
            "p_by_budget": self.p_by_budget,
        }


@dataclass(frozen=True, eq=False)
class Band:
    """Predicted rewards with 50 % and 90 % intervals at each compute; every array has shape (N,)."""

    compute: FloatArray
    median: FloatArray
    lower50: FloatArray
    upper50: FloatArray
    lower90: FloatArray
    upper90: FloatArray

    def to_dict(self) -> dict[str, list[float]]:
        """Equal-length lists."""
        names = ("compute", "median", "lower50", "upper50", "lower90", "upper90")
        return {name: [float(value) for value in getattr(self, name)] for name in names}

    def at(self, index: int) -> Estimate:
        """Median and 90 % interval at one compute."""
        return Estimate(float(self.median[index]), float(self.lower90[index]), float(self.upper90[index]))

    def around(self, other: Band) -> Band:
        """Its intervals drawn out to hold those of another band at the same compute."""
        return Band(
            self.compute,
            self.median,
            np.minimum(self.lower50, other.lower50),
            np.maximum(self.upper50, other.upper50),
            np.minimum(self.lower90, other.lower90),
            np.maximum(self.upper90, other.upper90),
        )

    def widened(self, factor: float | FloatArray, bounds: tuple[float, float]) -> Band:
        """The intervals `factor` times as wide about the median (one for all or one a compute), within `bounds`."""
        ends = (self.lower50, self.upper50, self.lower90, self.upper90)
        return Band(
            self.compute,
            self.median,
            *(np.clip(self.median + factor * (end - self.median), *bounds) for end in ends),
        )


def band_of(compute: FloatArray, draws: FloatArray) -> Band:
    """The band of equally weighted draws: (N, K) -> Band of N."""
    lower90, lower50, median, upper50, upper90 = quantiles(draws, LEVELS)
    return Band(compute, median, lower50, upper50, lower90, upper90)


def band_at(compute: FloatArray, draws_at: Callable[[FloatArray], FloatArray]) -> Band:
    """The same of draws that each place has for itself; of many places only so many are drawn at a time as fit into
    memory.

    Args:
        compute: (N,).
        draws_at: (n,) -> (n, K), for any of them.
    """
    if len(compute) <= _PLACES:
        return band_of(compute, draws_at(compute))
    parts = np.array_split(compute, -(-len(compute) // _PLACES))
    bands = [band_of(part, draws_at(part)) for part in parts]
    names = ("median", "lower50", "upper50", "lower90", "upper90")
    return Band(compute, *(np.concatenate([getattr(band, name) for band in bands]) for name in names))


def spread(draws: FloatArray, factor: float) -> FloatArray:
    """Draws, (..., K), `factor` times as far from their median, which stays."""
    if factor == 1.0:
        return draws
    middle = np.median(draws, axis=-1, keepdims=True)
    return np.asarray(middle + factor * (draws - middle))


def estimate_of(draws: FloatArray) -> Estimate:
    """Median and 90 % interval of equally weighted draws, shape (K,)."""
    lower, median, upper = quantiles(draws, (0.05, 0.5, 0.95))
    return Estimate(float(median), float(lower), float(upper))


def quantiles(draws: FloatArray, levels: Sequence[float]) -> FloatArray:
    """`np.quantile` of the last axis by its default method, for finite numbers: (..., K) -> (L, ...).

    >>> quantiles(np.array([3.0, 1.0, 2.0]), (0.0, 0.25, 1.0)).tolist()
    [1.0, 1.5, 3.0]
    """
    ordered = np.sort(draws, axis=-1)
    place = np.asarray(levels) * (ordered.shape[-1] - 1)
    below = place.astype(np.int64)
    low = ordered[..., below]
    high = ordered[..., np.minimum(below + 1, ordered.shape[-1] - 1)]
    return np.moveaxis(low + (place - below) * (high - low), -1, 0)


def finite(value: float | None) -> float | None:
    """The number, or None where JSON has no word for it."""
    return None if value is None or not np.isfinite(value) else float(value)


def jsonable(value: Any) -> Any:
    """Numbers of nested dicts and lists made JSON-safe.

    >>> jsonable({"ends": [1.0, float("inf")], "shape": (np.int64(2), np.array([0.5]))})
    {'ends': [1.0, None], 'shape': [2, [0.5]]}
    """
    if isinstance(value, dict):
        return {key: jsonable(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.bool_):
        return jsonable(value.tolist())
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return finite(float(value))
    if isinstance(value, np.integer):
        return int(value)
    return value
