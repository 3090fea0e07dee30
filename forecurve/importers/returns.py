"""Where the step of a log goes back: was the run resumed from there, or did the evaluation of an older checkpoint come
in late, from a job of its own?

After a resume the steps from there on are done again. So where other rows stand before and after it that went on as if
nothing had been, it came late. Where only evaluations are logged it came late when it stands in a gap that the others
had left, and neither came one of them again nor one between two of them: a resume that evaluates at other steps than
before does. What cannot be told is one whose evaluations up to where it had been all fall in gaps: its first may be the
only one. It is taken for late, which throws nothing away, and is said.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from .logs import Row, is_finite

_ALMOST = 0.75  # of the usual distance; what falls between two neighbours at that distance is half of it from one


class Report(NamedTuple):
    """One value of one number: where it stands, and in which row."""

    where: str
    step: float
    value: float
    part: int
    at: int


@dataclass
class Branch:
    """What led to the last report, in the order of steps; the rows that came late, and how often a run was resumed."""

    reports: list[Report] = field(default_factory=list)
    late: set[int] = field(default_factory=set)
    resumes: int = 0


def steps_between(rows: Sequence[Row], name: str, axis: str | None) -> dict[int, list[tuple[int, float]]]:
    """Of the rows that do not report a number, by the part that they are of, places and steps."""
    found: dict[int, list[tuple[int, float]]] = {}
    for at, row in enumerate(rows):
        step = None if axis is None or name in row.cells else row.cells.get(axis)
        if step is not None and is_finite(step):
            found.setdefault(row.part, []).append((at, float(step)))
    return found


def last_branch(reports: Sequence[Report], between: Sequence[tuple[int, float]]) -> Branch:
    """Without what a resume threw away: it drops those before it at its step or a later one.

    Args:
        reports: in the order of logging.
        between: places and steps of the other rows.
    """
    branch = Branch()
    kept = branch.reports
    reported: set[float] = set()
    for number, report in enumerate(reports):
        goes_back = bool(kept) and report.step < kept[-1].step
        if goes_back and _came_late(report, reports[number + 1 :], kept, reported, between):
            branch.late.add(report.at)
            _put_in(kept, report)
        else:
            branch.resumes += goes_back
            del kept[bisect_left(kept, report.step, key=attrgetter("step")) :]
            kept.append(report)
        reported.add(report.step)
    return branch


def _put_in(kept: list[Report], report: Report) -> None:
    place = bisect_left(kept, report.step, key=attrgetter("step"))
    kept[place : place + (kept[place].step == report.step)] = [report]


def _came_late(
    report: Report,
    later: Sequence[Report],
    kept: Sequence[Report],
    reported: set[float],
    between: Sequence[tuple[int, float]],
) -> bool:
    went_on = _went_on(report, between)
    if went_on is not None:
        return went_on
    steps = [one.step for one in kept]
    usual = _usual(steps)
    if report.step in reported or not _is_in_a_gap(report.step, steps, usual):
        return False
    return not _was_done_again(report, later, steps, reported, usual)


def _went_on(report: Report, between: Sequence[tuple[int, float]]) -> bool | None:
    """Whether the other rows go on behind it where they were; None where they cannot tell."""
    place = bisect_left(between, (report.at, 0.0))
    if not 0 < place < len(between):
        return None
    before, after = between[place - 1][1], between[place][1]
    return None if before <= report.step or before == after else after > before


def _usual(steps: Sequence[float]) -> float:
    """How far they are from one another."""
    distances = sorted(after - before for before, after in pairwise(steps))
    return distances[(len(distances) - 1) // 2] if distances else 0.0


def _is_in_a_gap(step: float, steps: Sequence[float], usual: float, before: float = -math.inf) -> bool:
    """Whether it is about as far from its neighbours, or from `before`, as these steps are from one another, or
    farther."""
    place = bisect_left(steps, step)
    if place == 0:  # before all others: begun anew
        return False
    return min(step - max(steps[place - 1], before), steps[place] - step) >= _ALMOST * usual


def _was_done_again(
    report: Report, later: Sequence[Report], steps: Sequence[float], reported: set[float], usual: float
) -> bool:
    """Whether, before the run gets beyond where it was, one that had been reported comes again, or one that goes on
    from here falls in no gap: whatever came on the way there is of that resume."""
    before, goes_on = report.step, True
    for one in later:
        if one.step > steps[-1]:
            return False
        if one.step in reported:
            return True
        goes_on = goes_on and one.step > before
        if goes_on and not _is_in_a_gap(one.step, steps, usual, before):
            return True
        before = one.step
    return False
