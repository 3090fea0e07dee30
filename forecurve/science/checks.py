"""What arguments must be: numbers, rows of them, kinds of objects, computes and rewards in order.

Every fault is a `FieldError` that names field, value and way out; of a curve's columns it is a `CurveError`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, MappingView, Sequence, Set
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE, is_compute

from . import errors
from .arrays import FloatArray
from .values import Estimate

MIN_POINTS = 3
MAX_POINTS = 1_000_000
MOST_COUNTED = 1e9  # prompts or samples
_NARROWEST, _WIDEST = 1e-12, 1e12  # range of a reward
_UNKNOWN = "leave it out where unknown"
LEAST_VARIANCE = 1e-12  # of the squared range, where not 0, which says unknown

Counts = Sequence[npt.ArrayLike | None]
PerPoint = npt.ArrayLike | Sequence[float | None] | None  # one number, or one per evaluation (None where unknown)


def bounds_of(bounds: tuple[float, float]) -> tuple[float, float]:
    """The range of a reward, (low, high): finite, in order, neither too narrow nor too wide."""
    try:
        low, high = (as_float(value) for value in bounds)
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.RewardRange("bounds", short(bounds), "two numbers are needed", "give (low, high)") from error
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise errors.RewardRange(
            "bounds", bounds, "the lower bound must be below the upper one and both finite", "give (low, high)"
        )
    check_width("bounds", high - low, bounds)
    return low, high


def check_width(field_name: str, width: float, given: object) -> None:
    """That a range of rewards, told by what is `given`, is so wide that its square is a number, and no wider."""
    if not _NARROWEST <= width <= _WIDEST:
        way_out = "count rewards in another unit"
        needed = f"a range of rewards is {_NARROWEST:g} to {_WIDEST:g} wide"
        raise errors.RewardRange(field_name, short(given), needed, way_out)


def refuse_too_many(field_name: str, values: object) -> None:
    """Before anything is allocated: what is lazy or shared may be far longer than memory."""
    size = _size_of(values)
    if size > MAX_POINTS:
        raise errors.TooManyPoints(
            field_name, f"{size} evaluations", f"at most {MAX_POINTS} are taken", "average neighbours"
        )


def _size_of(values: object) -> int:
    size = getattr(values, "size", None)
    if isinstance(size, int):
        return size
    if hasattr(values, "numel"):  # a tensor's `size` is a method, and one without dimensions has no length
        return int(values.numel())
    return len(values) if hasattr(values, "__len__") else 0


def floats_of(values: Any) -> FloatArray:
    """Numbers of any library as a new array, NaN for None and for what a mask hides.

    Raises:
        TypeError, ValueError, OverflowError: they are none.
    """
    if hasattr(values, "detach"):  # a torch tensor, of whatever device and precision, part of a graph or not
        values = values.detach().cpu()
        values = (values if values.is_complex() else values.double()).numpy()
    if np.ma.isMaskedArray(values):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    elif isinstance(values, list | tuple) and values and hasattr(values[0], "detach"):
        values = [one.tolist() for one in values]
    if getattr(values, "dtype", None) is not None and np.asarray(values).dtype.kind in "mMc":
        raise TypeError("dates and complex numbers are none of what is asked for here")
    return np.array(values, dtype=np.float64)


def short(values: object) -> str:
    """A value as an error shows it: at most 60 characters."""
    text = repr(values)
    return text if len(text) <= 60 else f"{text[:57]}..."


def restarts_of(restarts: npt.ArrayLike) -> tuple[float, ...]:
    """Compute at which a run was resumed, in order: finite, not negative."""
    values = np.sort(numbers("restarts", restarts))
    check_finite("restarts", values)
    if (values < 0).any():
        raise errors.ComputeOrder(
            "restarts", float(values[0]), "compute cannot be negative", "count it from the start of the run"
        )
    return tuple(float(value) for value in values)


def numbers(field_name: str, values: npt.ArrayLike, one_will_do: bool = False) -> FloatArray:
    """A row of numbers, which need not be finite; `one_will_do`: or a single one, as a row of it."""
    refuse_too_many(field_name, values)
    try:
        array = floats_of(values)
    except (TypeError, ValueError, OverflowError) as error:
        unordered_or_once = isinstance(values, Iterator | Set | MappingView)
        way_out = "pass a list" if unordered_or_once else "leave out what is not a number"
        raise errors.NotFinite(field_name, short(values), "numbers are needed", way_out) from error
    if one_will_do and array.ndim == 0:
        array = array[None]
    if array.ndim != 1:
        given = array.shape or short(values)
        raise errors.UnequalLengths(field_name, given, "one row of numbers is needed", "pass a flat list")
    return array


def number(field_name: str, value: float) -> float:
    """A number; which need not be finite."""
    return value if type(value) is float else float(numbers(field_name, [value])[0])


def as_float(value: Any) -> float:
    """A number of any library; a tensor's without its graph, for torch warns of every one that has one, and numpy of
    rows of one.

    Raises:
        TypeError, ValueError, OverflowError: it is none.
    """
    if getattr(value, "ndim", 0):
        raise TypeError("a row of numbers is not one")
    return float(value.detach() if hasattr(value, "detach") else value)


def is_positive(value: object, *, or_zero: bool = False) -> bool:
    """Whether it is one positive finite number; `or_zero`: or 0."""
    try:
        return not isinstance(value, str | bool) and (0 < as_float(value) < math.inf or (or_zero and value == 0))
    except (TypeError, ValueError, OverflowError):
        return False


def check_positive(
    field_name: str,
    value: object,
    error: type[errors.FieldError],
    way_out: str,
    needed: str = "a positive finite number is needed",
) -> None:
    """That it is one positive finite number; raises `error` else."""
    if not is_positive(value):
        raise error(field_name, short(value), needed, way_out)


def check_compute(
    field_name: str,
    value: object,
    error: type[errors.FieldError],
    way_out: str,
    needed: str = "a positive finite number is needed",
) -> None:
    """That it is one compute above 0 that a curve can have; raises `error` else."""
    check_positive(field_name, value, error, way_out, needed)
    if not is_compute(as_float(value)):
        within = f"compute above 0 must lie in {LEAST_COMPUTE:g} to {MOST_COMPUTE:g}"
        raise error(field_name, short(value), within, way_out)


def computes_of(field_name: str, values: npt.ArrayLike) -> FloatArray:
    """Where something is asked, (N,) with N at least 1: finite computes, none below 0."""
    x = numbers(field_name, values, one_will_do=True)
    bad = ~np.isfinite(x) | (x < 0)
    if bad.any() or not len(x):
        value = float(x[bad][0]) if len(x) else "none"
        needed = "a finite compute of at least 0 is needed"
        raise errors.ComputeOrder(field_name, value, needed, "ask for another")
    return x


def is_finite(value: object) -> bool:
    """Whether it is one finite number, as results are made of."""
    return isinstance(value, Real) and math.isfinite(value)


def check_estimate(field_name: str, said: object, error: type[errors.FieldError]) -> None:
    """That it is an `Estimate` of finite numbers in order: ends that are swapped would count as some interval."""
    way_out = "give Estimate(median, lower, upper)"
    check_kind(field_name, said, Estimate, way_out, error)
    assert isinstance(said, Estimate)
    if not all(is_finite(end) for end in (said.lower, said.median, said.upper)) or not (
        said.lower <= said.median <= said.upper
    ):
        value = f"{short(said.median)} ({short(said.lower)} to {short(said.upper)})"
        raise error(field_name, value, "finite numbers in order are needed", way_out)


def check_share(field_name: str, value: object, error: type[errors.FieldError]) -> None:
    """That it is a share of a run: above 0 and below 1."""
    way_out = "give a number above 0 and below 1"
    check_positive(field_name, value, error, way_out, needed="a share of the run is needed")
    if as_float(value) >= 1:
        raise error(field_name, short(value), "a share of the run is needed", way_out)


def whole_of(
    field_name: str,
    value: object,
    error: type[errors.FieldError],
    way_out: str,
    most: int | None = None,
    least: int = 0,
) -> int:
    """A whole number from `least` on, to `most` where that is given."""
    whole = int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else least - 1
    if whole < least or (most is not None and whole > most):
        upto = "on" if most is None else f"to {most}"
        raise error(field_name, short(value), f"a whole number from {least} {upto} is needed", way_out)
    return whole


def level_of(field_name: str, value: object, bounds: tuple[float, float]) -> float:
    """A reward inside its range, (low, high)."""
    low, high = bounds
    try:
        level = as_float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.NotFinite(field_name, short(value), "a number is needed", _UNKNOWN) from error
    if not np.isfinite(level):
        raise errors.NotFinite(field_name, short(value), "a finite number is needed", _UNKNOWN)
    if not low <= level <= high:
        way_out = "state the range with bounds=(low, high)"
        raise errors.RewardRange(field_name, level, f"rewards lie in [{low:g}, {high:g}]", way_out)
    return level


def check_kind(
    field_name: str, value: object, kind: type | tuple[type, ...], way_out: str, error: type[errors.FieldError]
) -> None:
    """That a door was given what it takes, so that a slip is told there and not by a line inside."""
    if not isinstance(value, kind):
        wanted = " or a ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
        article = "an" if wanted[0] in "AEIOU" else "a"
        raise error(field_name, type(value).__name__, f"{article} {wanted} is needed", way_out)


def check_difference(field_name: str, value: float | None, width: float, error: type[errors.FieldError]) -> None:
    """That a positive difference of rewards, where it is given, fits into their range."""
    if value is not None and is_positive(value) and as_float(value) > width:
        way_out = f"rewards have a range of {width:g}; give a difference between two of them"
        raise error(field_name, short(value), "no two rewards are so far apart", way_out)


def column_of(field_name: str, values: PerPoint, size: int, least: float, most: float) -> FloatArray | None:
    """One number per evaluation, NaN where unknown; None when nothing is known."""
    if values is None:
        return None
    refuse_too_many(field_name, values)
    try:
        array = floats_of(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.BadCount(
            field_name, short(values), "numbers are needed", "leave it empty where unknown"
        ) from error
    if array.ndim == 0:
        array = np.full(size, float(array))
    if array.shape != (size,):
        raise errors.UnequalLengths(
            field_name, array.shape, f"{size} values are needed, one per evaluation", "pair them up"
        )
    bad = ~np.isnan(array) & ((array < least) | (array > most))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        needed = f"a number from {least:g} to {most:g} is needed"
        raise errors.BadCount(field_name, float(array[at]), needed, "leave it empty where unknown", at)
    return None if np.isnan(array).all() else array


def check_variance(variance: FloatArray | None, width: float) -> None:
    """That a known variance, (N,), is no smaller than rounding in a range of this width; 0 and NaN say unknown."""
    if variance is None:
        return
    least = LEAST_VARIANCE * width**2
    bad = (variance > 0) & (variance < least)
    if bad.any():
        raise errors.BadCount(
            "variance", float(variance[bad][0]), f"at least {least:g} is needed", "give 0 where it is not known"
        )


def seed_of(seed: object) -> int | None:
    """A seed is a whole number, or not known."""
    if seed is None or (isinstance(seed, int | np.integer) and not isinstance(seed, bool)):
        return None if seed is None else int(seed)
    raise errors.CurveError("seed", short(seed), "a whole number is needed", "leave it out where unknown")


def unit_of(unit: object) -> str:
    """Every compute has a named unit."""
    if not isinstance(unit, str) or not unit.strip():
        raise errors.CurveError("unit", short(unit), "compute needs a named unit", 'give one, for example "GPU-hours"')
    return unit.strip()


def check_size(x: FloatArray) -> None:
    """That there are enough evaluations, and not too many; x: their compute, (N,)."""
    if len(x) < MIN_POINTS:
        raise errors.TooFewPoints(
            "compute", f"{len(x)} evaluation{'s' * (len(x) != 1)}", f"at least {MIN_POINTS} are needed", "wait for more"
        )
    if len(x) > MAX_POINTS:
        raise errors.TooManyPoints(
            "compute", f"{len(x)} evaluations", f"at most {MAX_POINTS} are taken", "average neighbours"
        )


def check_finite(field_name: str, values: FloatArray, offset: int = 0) -> None:
    """That all are finite, (N,); `offset`: evaluations before them, for the place that is told."""
    bad = ~np.isfinite(values)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise errors.NotFinite(
            field_name,
            f"{values[at]} at evaluation {at + 1 + offset}",
            "finite numbers are needed",
            "leave that evaluation out",
            at,
        )


def check_order(x: FloatArray, offset: int = 0) -> None:
    """That compute, (N,), is not negative, neither tiny nor huge, and increases; `offset`: as in `check_finite`."""
    if x[0] < 0:
        raise errors.ComputeOrder(
            "compute", float(x[0]), "compute cannot be negative", "count it from the start of the run", 0
        )
    outside = np.flatnonzero((x > 0) & ((x < LEAST_COMPUTE) | (x > MOST_COMPUTE)))
    if len(outside):
        at = int(outside[0])
        within = f"compute above 0 must lie in {LEAST_COMPUTE:g} to {MOST_COMPUTE:g}"
        raise errors.ComputeOrder("compute", float(x[at]), within, "choose another unit", at)
    steps = np.diff(x)
    if (steps > 0).all():
        return
    at = int(np.flatnonzero(steps <= 0)[0])
    word, way_out = "is repeated", "keep the newest point of each"
    if steps[at] < 0:
        word = f"goes backwards from {_told(x[at], x[at + 1])}"
        way_out = "sort the evaluations; after a resume keep those of the newest attempt"
    raise errors.ComputeOrder(
        "compute",
        f"{_told(x[at + 1], x[at])} at evaluation {at + 2 + offset}",
        f"compute must increase and {word}",
        way_out,
        at + 1,
    )


def _told(value: float, *others: float) -> str:
    """Six digits of it, or all where it would look like another."""
    alike = any(f"{value:g}" == f"{other:g}" and value != other for other in others)
    return repr(float(value)) if alike else f"{value:g}"


def check_range(y: FloatArray, low: float, high: float, offset: int = 0) -> None:
    """That rewards, (N,), lie in their range; `offset`: as in `check_finite`."""
    outside = (y < low) | (y > high)
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        raise errors.RewardRange(
            "reward",
            f"{_told(y[at], low, high)} at evaluation {at + 1 + offset}",
            f"rewards must lie in [{low:g}, {high:g}]",
            "give pass rates, or state the range with bounds=(low, high)",
            at,
        )
