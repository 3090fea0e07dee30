"""From the log of a run to its evaluations: each step once, with the compute that it had cost.

Rows come in the order of logging. Where the step goes back the run was resumed from a checkpoint, and what it had
logged from there on is of a branch of training that was thrown away, as in the service's curves. Where the step goes
back time and again the rows are in another order, newest first or none, and all of them are kept.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from forecurve.curve_cells import CurveFileError, number_of
from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE, is_compute

from .logs import Log, Row

AGAIN = "of steps that were logged again later (the last report counts)"
NO_NUMBER = "not finite (NaN)"
NO_STEP = "without a step"
NO_COMPUTE = "before any compute was logged"
EARLIER = "with the compute that was logged last before"
BACK = (
    "the step went back, as after a resume: what had been logged from there on is left out "
    "(where nothing was resumed, sort the rows by step)"
)
THROWN_AWAY = "of later steps than a resume went back to"
UNORDERED = "with its rows in no order of steps: all are kept"


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
    part: int


def evaluations_of(
    log: Log, metric: str, axis: str | None, compute: str | None, per_step: float, left: Counter[str]
) -> list[Evaluation]:
    """The evaluations of a run in the order of compute.

    Args:
        axis: the number that is the step; rows are counted where it is None, which needs `compute`.
        compute: the number that is the compute, else the step; a step that has none has what was logged last before.
        per_step: what one step, or one unit of that number, costs.
        left: counts what is left out by why; under `EARLIER`, `BACK` and `UNORDERED` what only needs telling.

    Raises:
        CurveFileError: a cell is no number, or compute does not increase; names the run and the line.
    """
    reports = _reports(log.rows, metric, axis, left)
    points = _kept(reports, left)
    known = {point.step for point in points}
    again = sum(report.step in known for report in reports) - len(points)
    left[AGAIN] += again
    left[THROWN_AWAY] += len(reports) - len(points) - again
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
            reports.append(_Report(row.where, step, value, row.part))
    return reports


def _kept(reports: Sequence[_Report], left: Counter[str]) -> list[_Report]:
    """Of each step the last report, in the order of steps, without what a resume threw away.

    Files that were given together may be so in any order: each is looked at by itself.
    """
    last: dict[float, _Report] = {}
    for _, of_part in groupby(reports, key=lambda report: report.part):
        part = list(of_part)
        back = sum(later.step < report.step for report, later in pairwise(part))
        ordered = 3 * back <= max(3, len(part) - 1)  # half of shuffled rows go back; resumes are far between
        left[BACK if ordered else UNORDERED] += back if ordered else 1
        last |= {report.step: report for report in (_last_branch(part) if ordered else part)}
    return [last[step] for step in sorted(last)]


def _last_branch(reports: Sequence[_Report]) -> list[_Report]:
    """What led to the last report: each drops those before it at its step or a later one."""
    branch: list[_Report] = []
    for report in reports:
        while branch and branch[-1].step >= report.step:
            branch.pop()
        branch.append(report)
    return branch


def _spent(rows: Sequence[Row], compute: str, axis: str | None) -> list[_Report]:
    """What had been spent at each step, in their order."""
    return _kept(_reports(rows, compute, axis, Counter()), Counter())


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
