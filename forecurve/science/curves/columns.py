"""The columns of a curve: what the counts in them must be, the start in front of them, one more value behind."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .. import errors
from ..arrays import FloatArray, IntArray
from ..checks import MOST_COUNTED, Counts, check_kind, column_of, floats_of, level_of, short

_AGREEMENT = 1e-3  # of a reward and its counts: rounding


def with_start(
    x: FloatArray,
    y: FloatArray,
    per_point: dict[str, FloatArray | None],
    tallies: tuple[IntArray | None, ...] | None,
    start: float,
    low: float,
    high: float,
) -> tuple[FloatArray, FloatArray, dict[str, FloatArray | None], tuple[IntArray | None, ...] | None]:
    """Every column with the measured start in front, at compute 0 and with the noise of the first evaluation."""
    measured = level_of("start", start, (low, high))
    if len(x) and x[0] == 0:
        raise errors.ComputeOrder("start", start, "compute 0 is already among the points", "leave `start` out")
    longer = {key: None if array is None else np.concatenate([array[:1], array]) for key, array in per_point.items()}
    counts = None if tallies is None else (None, *tallies)
    return np.concatenate([[0.0], x]), np.concatenate([[measured], y]), longer, counts


def tallies_of(counts: Counts | None, samples: FloatArray | None, size: int) -> tuple[IntArray | None, ...] | None:
    """Successes per prompt of each of `size` evaluations, None where unknown; each from 0 to its `samples`, (N,)."""
    if counts is None:
        return None
    check_kind("counts", counts, (Sequence, np.ndarray), "pass a list of lists", errors.BadCount)
    if getattr(counts, "ndim", 1) == 0:
        raise errors.BadCount("counts", short(counts), "one list an evaluation is needed", "pass a list of lists")
    if len(counts) != size:
        raise errors.UnequalLengths(
            "counts", len(counts), f"{size} lists are needed, one per evaluation", "use None where unknown"
        )
    if samples is None:
        raise errors.BadCount("samples", None, "counts need the number of samples per prompt", "pass samples=")
    tallies = tuple(None if row is None else whole_numbers(row) for row in counts)
    for row, most in zip(tallies, samples, strict=True):
        if row is not None:
            _check_tally(row, float(most))
    return tallies


def _check_tally(row: IntArray, most: float) -> None:
    """One evaluation's successes per prompt, (prompts,), each from 0 to `most` samples, NaN where that is unknown."""
    known = math.isfinite(most)
    if known and most != round(most):
        needed = "counts need a whole number of samples per prompt"
        raise errors.BadCount("samples", most, needed, "give that, or leave the counts out")
    if len(row) == 0 or row.min() < 0 or (known and row.max() > most):
        value = [] if len(row) == 0 else [int(row.min()), int(row.max())]
        needed = f"each count must lie in 0..{most:g}" if known else "each count must be at least 0"
        raise errors.BadCount("counts", value, needed, "count successes per prompt")


def whole_numbers(row: npt.ArrayLike) -> IntArray:
    """One evaluation's counts, whole and of a size that floats hold exactly: (prompts,)."""
    try:
        values = floats_of(row).ravel()
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.BadCount("counts", short(row), "whole numbers are needed", "count successes per prompt") from error
    whole = values.astype(np.int64) if (np.abs(values) < 2**53).all() else np.zeros(len(values), dtype=np.int64)
    if (whole != values).any():
        raise errors.BadCount("counts", short(row), "whole numbers are needed", "count successes per prompt")
    return whole


def check_agreement(rates: FloatArray, tallies: tuple[IntArray | None, ...] | None, samples: FloatArray | None) -> None:
    """Rewards in [0, 1] are those of their counts."""
    for at, (row, each) in enumerate(zip(tallies or (), samples if samples is not None else (), strict=False)):
        if row is not None and np.isfinite(each) and abs(float(row.mean()) / each - rates[at]) > _AGREEMENT:
            raise errors.BadCount(
                "counts",
                f"a pass rate of {row.mean() / each:.4g} at evaluation {at + 1}",
                f"the reward there is {rates[at]:.4g}, as a share of its range",
                "give the counts of that evaluation, or leave them out",
            )


def next_of(field_name: str, value: float | None, column: FloatArray | None) -> FloatArray | None:
    """The column's next value, shape (1,): the last one where none is given."""
    if value is None:
        return None if column is None else column[-1:]
    return column_of(field_name, value, 1, 1.0, MOST_COUNTED)


def longer(column: FloatArray | None, last: FloatArray | None, size: int) -> FloatArray | None:
    """A column with one more value, NaN where unknown."""
    if column is None and last is None:
        return None
    head = np.full(size - 1, np.nan) if column is None else column
    return np.concatenate([head, [np.nan] if last is None else last])
