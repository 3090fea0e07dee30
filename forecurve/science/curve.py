"""A validation curve: what was measured, in which unit, and how noisy each evaluation is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from . import errors
from .arrays import FloatArray, IntArray
from .noise import SamplingNoise, next_noise, sampling_noise

MIN_POINTS = 3
MAX_POINTS = 1_000_000
_WIDEST = 1e12  # range of a reward
_MOST_COUNTED = 1e9  # prompts or samples
_LEAST_VARIANCE = 1e-12  # of the squared range, where not 0, which says unknown
_COMPUTE_RANGE = (1e-30, 1e40)  # any sensible unit; beyond, products of ours leave what a float can hold
DEFAULT_UNIT = "GPU-hours"

Counts = Sequence[npt.ArrayLike | None]
PerPoint = npt.ArrayLike | Sequence[float | None] | None  # one number, or one per evaluation (None where unknown)


@dataclass(frozen=True)
class Evaluation:
    """One more evaluation of a run.

    Attributes:
        compute, reward: as in `Curve`.
        prompts, samples: its size; that of the evaluation before where left out.
        variance: its known sampling variance.
        counts: successes per prompt; needs `samples`.
    """

    compute: float
    reward: float
    prompts: float | None = None
    samples: float | None = None
    variance: float | None = None
    counts: npt.ArrayLike | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """Evaluations of one run in the order of compute.

    Args:
        compute: compute spent at each evaluation, strictly increasing, in `unit`; shape (N,). 0 is allowed for the
            first one and is a measurement of R0.
        reward: mean pass rate at each evaluation, inside `bounds`; shape (N,).
        unit: the unit of compute, e.g. "GPU-hours".
        name: what the run is called in sentences and JSON.
        prompts: prompts in an evaluation: one number, or one per evaluation (None or NaN where unknown).
        samples: samples per prompt, likewise.
        variance: known sampling variance of each evaluation, shape (N,); goes before counts and prompts.
        counts: successes per prompt of each evaluation (prompts in a fixed order), or None where unknown;
            needs `samples`.
        start: the measured reward at zero compute, where it is not among the points. It is put in front as an
            evaluation with the noise of the first one.
        seed: the seed of the run.
        bounds: the range of the reward.
        restarts: compute at which the run was resumed from a checkpoint, if it was: what an evaluation holds beside the
            curve and sampling noise does not carry over from one segment to the next.

    Raises:
        CurveError: one of its subclasses, naming field, value and way out.

    >>> curve = Curve([1, 2, 4, 8], [0.30, 0.41, 0.52, 0.58], unit="GPU-hours", prompts=1000, samples=16, start=0.2)
    >>> curve
    Curve('run': 5 evaluations to 8 GPU-hours, reward 0.2 to 0.58)
    """

    compute: FloatArray
    reward: FloatArray
    unit: str = DEFAULT_UNIT
    name: str = "run"
    prompts: FloatArray | None = None
    samples: FloatArray | None = None
    variance: FloatArray | None = None
    counts: tuple[IntArray | None, ...] | None = None
    start: float | None = None
    seed: int | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    restarts: tuple[float, ...] = ()
    noise: SamplingNoise = field(init=False)

    def __init__(
        self,
        compute: npt.ArrayLike,
        reward: npt.ArrayLike,
        unit: str = DEFAULT_UNIT,
        name: str = "run",
        prompts: PerPoint = None,
        samples: PerPoint = None,
        variance: PerPoint = None,
        counts: Counts | None = None,
        start: float | None = None,
        seed: int | None = None,
        bounds: tuple[float, float] = (0.0, 1.0),
        restarts: npt.ArrayLike = (),
    ):
        low, high = _bounds(bounds)
        x, y = _numbers("compute", compute), _numbers("reward", reward)
        if len(x) != len(y):
            raise errors.UnequalLengths(
                "reward", len(y), f"{len(x)} values are needed, one per compute", "pair them up"
            )
        size = len(x)
        per_point = {
            "prompts": _per_point("prompts", prompts, size, 1.0, _MOST_COUNTED),
            "samples": _per_point("samples", samples, size, 1.0, _MOST_COUNTED),
            "variance": _per_point("variance", variance, size, 0.0, (high - low) ** 2),
        }
        _check_variance(per_point["variance"], high - low)
        tallies = _tallies(counts, per_point["samples"], size)
        if start is not None:
            x, y, per_point, tallies = _with_start(x, y, per_point, tallies, start)
        _check_size(x)
        _check_finite("compute", x)
        _check_finite("reward", y)
        _check_order(x)
        _check_range(y, low, high)
        for array in (x, y, *per_point.values()):
            if array is not None:
                array.flags.writeable = False
        values: dict[str, Any] = {
            "compute": x,
            "reward": y,
            "unit": str(unit),
            "name": str(name),
            **per_point,
            "counts": tallies,
            "start": start,
            "seed": seed,
            "bounds": (low, high),
            "restarts": _restarts(restarts),
        }
        values["noise"] = sampling_noise((y - low) / (high - low), high - low, **per_point, counts=tallies)
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @property
    def points(self) -> int:
        """Number of evaluations, the start included."""
        return len(self.compute)

    @property
    def now(self) -> float:
        """Compute of the last evaluation."""
        return float(self.compute[-1])

    def until(self, compute: float) -> Curve:
        """The same curve as it was at `compute`: its evaluations up to and including it."""
        keep = int(np.searchsorted(self.compute, compute, side="right"))
        cut: dict[str, Any] = {
            key: None if array is None else array[:keep]
            for key, array in (("prompts", self.prompts), ("samples", self.samples), ("variance", self.variance))
        }
        return Curve(
            self.compute[:keep],
            self.reward[:keep],
            unit=self.unit,
            name=self.name,
            counts=None if self.counts is None else self.counts[:keep],
            seed=self.seed,
            bounds=self.bounds,
            restarts=self.restarts,
            **cut,
        )

    def extended(self, new: Evaluation) -> Curve:
        """The same curve with one more evaluation; only that one is looked at.

        Raises:
            CurveError: as for a whole curve.
        """
        size, (low, high) = self.points + 1, self.bounds
        x, y = (_numbers(name, [value]) for name, value in (("compute", new.compute), ("reward", new.reward)))
        if not (self.now < x[0] < np.inf and low <= y[0] <= high):  # says which of them
            _check_finite("compute", x, offset=self.points)
            _check_finite("reward", y, offset=self.points)
            _check_order(np.concatenate([self.compute[-1:], x]), offset=self.points - 1)
            _check_range(y, low, high, offset=self.points)
        given = {
            "prompts": _next("prompts", new.prompts, self.prompts),
            "samples": _next("samples", new.samples, self.samples),
            "variance": _per_point("variance", new.variance, 1, 0.0, (high - low) ** 2),
        }
        _check_variance(given["variance"], high - low)
        counts = None if new.counts is None else [new.counts]
        tallies = _tallies(counts, given["samples"], 1)
        rate, scale = (y - low) / (high - low), high - low
        if tallies is None and given["variance"] is None:
            one = next_noise(float(rate[0]), scale, given["prompts"], given["samples"])
        else:
            one = sampling_noise(rate, scale, **given, counts=tallies)
        if one.source != self.noise.source:  # what is known of one evaluation changes what is assumed of all
            return self._rebuilt(x, y, given, tallies)
        longer = Curve.__new__(Curve)
        columns = {name: _longer(getattr(self, name), given[name], size) for name in given}
        values: dict[str, Any] = {
            "compute": np.concatenate([self.compute, x]),
            "reward": np.concatenate([self.reward, y]),
            "unit": self.unit,
            "name": self.name,
            **columns,
            "counts": None if tallies is None and self.counts is None else (*self._rows(), *(tallies or (None,))),
            "start": self.start,
            "seed": self.seed,
            "bounds": self.bounds,
            "restarts": self.restarts,
            "noise": SamplingNoise(np.concatenate([self.noise.variance, one.variance]), one.source),
        }
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(longer, name, value)
        return longer

    def _rows(self) -> tuple[IntArray | None, ...]:
        return (None,) * self.points if self.counts is None else self.counts

    def _rebuilt(
        self,
        x: FloatArray,
        y: FloatArray,
        given: dict[str, FloatArray | None],
        tallies: tuple[IntArray | None, ...] | None,
    ) -> Curve:
        size = self.points + 1
        columns: dict[str, Any] = {name: _longer(getattr(self, name), given[name], size) for name in given}
        counts = None if tallies is None and self.counts is None else (*self._rows(), *(tallies or (None,)))
        return Curve(
            np.concatenate([self.compute, x]),
            np.concatenate([self.reward, y]),
            unit=self.unit,
            name=self.name,
            counts=counts,
            seed=self.seed,
            bounds=self.bounds,
            restarts=self.restarts,
            **columns,
        )

    def __len__(self) -> int:
        return self.points

    def __repr__(self) -> str:
        return (
            f"Curve({self.name!r}: {self.points} evaluations to {self.now:g} {self.unit}, "
            f"reward {self.reward.min():.3g} to {self.reward.max():.3g})"
        )


def _bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(value) for value in bounds)
    except (TypeError, ValueError) as error:
        raise errors.RewardRange("bounds", _short(bounds), "two numbers are needed", "give (low, high)") from error
    if not (np.isfinite(low) and np.isfinite(high) and low < high and high - low <= _WIDEST):
        raise errors.RewardRange(
            "bounds", bounds, "the lower bound must be below the upper one and both finite", "give (low, high)"
        )
    return low, high


def _refuse_too_many(field_name: str, values: object) -> None:
    """Before anything is allocated: what is lazy or shared may be far longer than memory."""
    size = getattr(values, "size", None)
    if not isinstance(size, int):
        size = len(values) if hasattr(values, "__len__") else 0
    if size > MAX_POINTS:
        raise errors.TooManyPoints(
            field_name, f"{size} evaluations", f"at most {MAX_POINTS} are taken", "average neighbours"
        )


def _short(values: object) -> str:
    text = repr(values)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _restarts(restarts: npt.ArrayLike) -> tuple[float, ...]:
    values = np.sort(_numbers("restarts", restarts)) if np.size(restarts) else np.array([])
    _check_finite("restarts", values)
    return tuple(float(value) for value in values)


def _numbers(field_name: str, values: npt.ArrayLike) -> FloatArray:
    _refuse_too_many(field_name, values)
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.NotFinite(
            field_name, _short(values), "numbers are needed", "leave out what is not a number"
        ) from error
    if array.ndim != 1:
        raise errors.UnequalLengths(field_name, array.shape, "one row of numbers is needed", "pass a flat list")
    return array


def _per_point(field_name: str, values: PerPoint, size: int, least: float, most: float) -> FloatArray | None:
    """One number per evaluation, NaN where unknown; None when nothing is known."""
    if values is None:
        return None
    _refuse_too_many(field_name, values)
    try:
        array = np.array(values, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.BadCount(
            field_name, _short(values), "numbers are needed", "leave it empty where unknown"
        ) from error
    if array.ndim == 0:
        array = np.full(size, float(array))
    if array.shape != (size,):
        raise errors.UnequalLengths(
            field_name, array.shape, f"{size} values are needed, one per evaluation", "pair them up"
        )
    bad = ~np.isnan(array) & ((array < least) | (array > most))
    if bad.any():
        value = float(array[bad][0])
        raise errors.BadCount(
            field_name, value, f"a number from {least:g} to {most:g} is needed", "leave it empty where unknown"
        )
    return None if np.isnan(array).all() else array


def _next(field_name: str, value: float | None, column: FloatArray | None) -> FloatArray | None:
    """The column's next value, shape (1,): the last one where none is given."""
    if value is None:
        return None if column is None else column[-1:]
    return _per_point(field_name, value, 1, 1.0, _MOST_COUNTED)


def _check_variance(variance: FloatArray | None, width: float) -> None:
    if variance is None:
        return
    least = _LEAST_VARIANCE * width**2
    bad = (variance > 0) & (variance < least)
    if bad.any():
        raise errors.BadCount(
            "variance", float(variance[bad][0]), f"at least {least:g} is needed", "give 0 where it is not known"
        )


def _longer(column: FloatArray | None, last: FloatArray | None, size: int) -> FloatArray | None:
    """A column with one more value, NaN where unknown."""
    if column is None and last is None:
        return None
    head = np.full(size - 1, np.nan) if column is None else column
    return np.concatenate([head, [np.nan] if last is None else last])


def _tallies(counts: Counts | None, samples: FloatArray | None, size: int) -> tuple[IntArray | None, ...] | None:
    if counts is None:
        return None
    if len(counts) != size:
        raise errors.UnequalLengths(
            "counts", len(counts), f"{size} lists are needed, one per evaluation", "use None where unknown"
        )
    if samples is None:
        raise errors.BadCount("samples", None, "counts need the number of samples per prompt", "pass samples=")
    tallies = tuple(None if row is None else _whole_numbers(row) for row in counts)
    for row, most in zip(tallies, samples, strict=True):
        if row is not None and (len(row) == 0 or row.min() < 0 or (np.isfinite(most) and row.max() > most)):
            value = [] if len(row) == 0 else [int(row.min()), int(row.max())]
            raise errors.BadCount("counts", value, f"each count must lie in 0..{most:g}", "count successes per prompt")
    return tallies


def _whole_numbers(row: npt.ArrayLike) -> IntArray:
    try:
        values = np.asarray(row, dtype=np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise errors.BadCount(
            "counts", _short(row), "whole numbers are needed", "count successes per prompt"
        ) from error
    whole = values.astype(np.int64) if (np.abs(values) < 2**53).all() else np.zeros(len(values), dtype=np.int64)
    if (whole != values).any():
        raise errors.BadCount("counts", _short(row), "whole numbers are needed", "count successes per prompt")
    return whole


def _with_start(
    x: FloatArray,
    y: FloatArray,
    per_point: dict[str, FloatArray | None],
    tallies: tuple[IntArray | None, ...] | None,
    start: float,
) -> tuple[FloatArray, FloatArray, dict[str, FloatArray | None], tuple[IntArray | None, ...] | None]:
    try:
        measured = float(start)
    except (TypeError, ValueError) as error:
        raise errors.NotFinite("start", _short(start), "a number is needed", "leave it out where unknown") from error
    if len(x) and x[0] == 0:
        raise errors.ComputeOrder("start", start, "compute 0 is already among the points", "leave `start` out")
    longer = {key: None if array is None else np.concatenate([array[:1], array]) for key, array in per_point.items()}
    counts = None if tallies is None else (None, *tallies)
    return np.concatenate([[0.0], x]), np.concatenate([[measured], y]), longer, counts


def _check_size(x: FloatArray) -> None:
    if len(x) < MIN_POINTS:
        raise errors.TooFewPoints(
            "compute", f"{len(x)} evaluations", f"at least {MIN_POINTS} are needed", "wait for more"
        )
    if len(x) > MAX_POINTS:
        raise errors.TooManyPoints(
            "compute", f"{len(x)} evaluations", f"at most {MAX_POINTS} are taken", "average neighbours"
        )


def _check_finite(field_name: str, values: FloatArray, offset: int = 0) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise errors.NotFinite(
            field_name,
            f"{values[at]} at evaluation {at + 1 + offset}",
            "finite numbers are needed",
            "leave that evaluation out",
        )


def _check_order(x: FloatArray, offset: int = 0) -> None:
    if x[0] < 0:
        raise errors.ComputeOrder(
            "compute", float(x[0]), "compute cannot be negative", "count it from the start of the run"
        )
    low, high = _COMPUTE_RANGE
    outside = x[(x > 0) & ((x < low) | (x > high))]
    if len(outside):
        raise errors.ComputeOrder(
            "compute", float(outside[0]), f"compute above 0 must lie in {low:g} to {high:g}", "choose another unit"
        )
    steps = np.diff(x)
    if (steps > 0).all():
        return
    at = int(np.flatnonzero(steps <= 0)[0])
    word = "is repeated" if steps[at] == 0 else f"goes backwards from {x[at]:g}"
    raise errors.ComputeOrder(
        "compute",
        f"{x[at + 1]:g} at evaluation {at + 2 + offset}",
        f"compute must increase and {word}",
        "keep the newest point of each",
    )


def _check_range(y: FloatArray, low: float, high: float, offset: int = 0) -> None:
    outside = (y < low) | (y > high)
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        raise errors.RewardRange(
            "reward",
            f"{y[at]:g} at evaluation {at + 1 + offset}",
            f"rewards must lie in [{low:g}, {high:g}]",
            "give pass rates, or state the range with bounds=(low, high)",
        )
