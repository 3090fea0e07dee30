"""From the log of a run to its evaluations: each step once, with the compute that it had cost.

Rows come in the order of logging. Where the step goes back the run was resumed from a checkpoint, and what it had
logged from there on is of a branch of training that was thrown away, as in the service's curves. An evaluation of an
older checkpoint that came in late throws nothing away: `returns` tells the two apart. Where the step goes back time and
again the rows are in another order, newest first or none, and all of them are kept.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from forecurve.curve_cells import CurveFileError, number_of
from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE, is_compute

from .logs import Log, Row
from .returns import Report, last_branch, steps_between

AGAIN = "of steps that were logged again later (the last report counts)"
NO_NUMBER = "not finite (NaN)"
NO_STEP = "without a step"
NO_COMPUTE = "before any compute was logged"
EARLIER = "with the compute that was logged last before"
BACK = (
    "the step went back, as after a resume: what had been logged from there on is left out "
    "(where nothing was resumed, sort the rows by step)"
)
LATE = (
    "came in late, as of an older checkpoint: nothing was done again from there, so nothing is thrown away "
    "(where the run was resumed there, take out the rows of later steps before it)"
)
OF_ANOTHER_STEP = "that came in late with the compute of another step"
THROWN_AWAY = "of later steps than a resume went back to"
UNORDERED = "with its rows in no order of steps: all are kept"


class Evaluation(NamedTuple):
    """One point of a curve and where it stands."""

    where: str
    step: float
    compute: float
    reward: float


def evaluations_of(
    log: Log, metric: str, axis: str | None, compute: str | None, per_step: float, left: Counter[str]
) -> list[Evaluation]:
    """The evaluations of a run in the order of compute.

    Args:
        axis: the number that is the step; rows are counted where it is None, which needs `compute`.
        compute: the number that is the compute, else the step; a step that has none has what was logged last before.
        per_step: what one step, or one unit of that number, costs.
        left: counts what is left out by why; under `EARLIER`, `BACK`, `LATE` and `UNORDERED` what only needs telling.

    Raises:
        CurveFileError: a cell is no number, or compute does not increase; names the run and the line.
    """
    reports = _reports(log.rows, metric, axis, left)
    points, late = _kept(reports, steps_between(log.rows, metric, axis), left)
    known = {point.step for point in points}
    again = sum(report.step in known for report in reports) - len(points)
    left[AGAIN] += again
    left[THROWN_AWAY] += len(reports) - len(points) - again
    if compute is not None and compute != axis:
        spent = _spent(log.rows, compute, axis, late)
        came_late = {point.step for point in points if point.at in late}
        evaluations = _that_rise(_with_spent(points, spent, per_step, left), came_late, left)
    else:
        evaluations = [Evaluation(point.where, point.step, point.step * per_step, point.value) for point in points]
    _check_increases(log, compute or axis or "compute", evaluations)
    return evaluations


def _reports(rows: Sequence[Row], name: str, axis: str | None, left: Counter[str]) -> list[Report]:
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
            reports.append(Report(row.where, step, value, row.part, at))
    return reports


def _kept(
    reports: Sequence[Report], between: Mapping[int, Sequence[tuple[int, float]]], left: Counter[str]
) -> tuple[list[Report], set[int]]:
    """Of each step the last report, in the order of steps, without what a resume threw away; and which rows came late.

    Files that were given together may be so in any order: each is looked at by itself.
    """
    last: dict[float, Report] = {}
    late: set[int] = set()
    for number, of_part in groupby(reports, key=lambda report: report.part):
        part = list(of_part)
        back = sum(later.step < report.step for report, later in pairwise(part))
        if 3 * back <= max(3, len(part) - 1):  # half of shuffled rows go back; resumes are far between
            branch = last_branch(part, between.get(number, ()))
            left[BACK] += branch.resumes
            left[LATE] += len(branch.late)
            late |= branch.late
            part = branch.reports
        else:
            left[UNORDERED] += 1
            late |= {later.at for report, later in pairwise(part) if later.step < report.step}
        last |= {report.step: report for report in part}
    return [last[step] for step in sorted(last)], late


def _spent(rows: Sequence[Row], compute: str, axis: str | None, late: set[int]) -> list[Report]:
    """What had been spent at each step, in their order.

    Args:
        late: rows of evaluations that came in late. They are no resume, and tell the compute of a step that nothing
            else tells: what others said when they came to it is surer.
    """
    reports = _reports(rows, compute, axis, Counter())
    kept, _ = _kept([report for report in reports if report.at not in late], {}, Counter())
    last = {report.step: report for report in reports if report.at in late} | {report.step: report for report in kept}
    return [last[step] for step in sorted(last)]


def _with_spent(
    points: Sequence[Report], spent: Sequence[Report], per_step: float, left: Counter[str]
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


def _that_rise(evaluations: Sequence[Evaluation], late: set[float], left: Counter[str]) -> list[Evaluation]:
    """Without those that came late and say what had been spent by then, or nothing of their own step."""
    sure = [one for one in evaluations if one.step not in late]
    steps, spent = [one.step for one in sure], [-math.inf, *(one.compute for one in sure), math.inf]
    found = []
    for one in evaluations:
        place = bisect_left(steps, one.step)
        if one.step in late and not spent[place] < one.compute < spent[place + 1]:
            left[OF_ANOTHER_STEP] += 1
        else:
            found.append(one)
    return found


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
