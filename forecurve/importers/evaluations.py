"""From the log of a run to its evaluations: each step once, with the compute that it had cost."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from forecurve.curve_cells import CurveFileError, number_of
from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE, is_compute

from .logs import Log, Row

AGAIN = "of steps that were logged again later (the last report counts)"
NO_NUMBER = "not finite (NaN)"
NO_STEP = "without a step"
NO_COMPUTE = "before any compute was logged"
EARLIER = "with the compute that was logged last before"
BACK = "the step went back, as after a resume; what was logged at later steps before is kept where it was not repeated"


class Evaluation(NamedTuple):
    """One point of a curve and where it stands."""

    where: str
    step: float
    compute: float
    reward: float


class _Report(NamedTuple):
    where: str
    step: float
    value: float


def evaluations_of(
    log: Log, metric: str, axis: str | None, compute: str | None, per_step: float, left: Counter[str]
) -> list[Evaluation]:
    """The evaluations of a run in the order of compute.

    Args:
        axis: the number that is the step; rows are counted where it is None, which needs `compute`.
        compute: the number that is the compute, else the step; a step that has none has what was logged last before.
        per_step: what one step, or one unit of that number, costs.
        left: counts what is left out by why; under `EARLIER` and `BACK` what only needs telling.

    Raises:
        CurveFileError: a cell is no number, or compute does not increase; names the run and the line.
    """
    reports = _reports(log.rows, metric, axis, left)
    last = {report.step: report for report in reports}
    left[AGAIN] += len(reports) - len(last)
    left[BACK] += sum(later.step < report.step for report, later in pairwise(reports))
    points = [last[step] for step in sorted(last)]
    if compute is not None and compute != axis:
        spent = _spent(log.rows, compute, axis)
        evaluations = _with_spent(points, spent, per_step, left)
    else:
        evaluations = [Evaluation(point.where, point.step, point.step * per_step, point.value) for point in points]
    _check_increases(log, compute or axis or "compute", evaluations)
    return evaluations


def _reports(rows: Sequence[Row], name: str, axis: str | None, left: Counter[str]) -> list[_Report]:
    """What was logged by a name, finite and with a step."""
    reports = []
    for at, row in enumerate(rows):
        value = number_of(name, row.cells.get(name), row.where)
        if value is None:
            continue
        step = float(at) if axis is None else number_of(axis, row.cells.get(axis), row.where)
        if not math.isfinite(value):
            left[NO_NUMBER] += 1
        elif step is None or not math.isfinite(step):
            left[NO_STEP] += 1
        else:
            reports.append(_Report(row.where, step, value))
    return reports


def _spent(rows: Sequence[Row], compute: str, axis: str | None) -> list[_Report]:
    """What had been spent at each step, in their order."""
    last = {report.step: report for report in _reports(rows, compute, axis, Counter())}
    return [last[step] for step in sorted(last)]


def _with_spent(
    points: Sequence[_Report], spent: Sequence[_Report], per_step: float, left: Counter[str]
) -> list[Evaluation]:
    """Trackers log evaluations and compute apart: a point has what was spent at its step, or last before."""
    steps = [report.step for report in spent]
    evaluations = []
    for point in points:
        before = bisect_right(steps, point.step) - 1
        if before < 0:
            left[NO_COMPUTE] += 1
            continue
        left[EARLIER] += steps[before] < point.step
        evaluations.append(Evaluation(point.where, point.step, spent[before].value * per_step, point.value))
    return evaluations


def _check_increases(log: Log, name: str, evaluations: Sequence[Evaluation]) -> None:
    before: Evaluation | None = None
    for one in evaluations:
        field = f"{name} of run {log.run!r} at {one.where}"
        if not is_compute(one.compute):
            raise CurveFileError(
                field,
                f"{one.compute:g}",
                f"compute must be 0, or lie in {LEAST_COMPUTE:g} to {MOST_COMPUTE:g}",
                "count it from the start of the run",
            )
        if before is not None and one.compute <= before.compute:
            word = "is repeated" if one.compute == before.compute else "goes backwards"
            raise CurveFileError(
                field,
                f"{one.compute!r} after {before.compute!r} at {before.where}",
                f"compute must increase and {word}",
                "name a number that grows with every evaluation, or count steps",
            )
        before = one
