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
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from .logs import Row, is_finite

_ALMOST = 0.75  # of the usual distance; what falls between two neighbours at that distance is half of it from one
_step = attrgetter("step")


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
    walk = _Walk(reports, between)
    for number in range(len(reports)):
        walk.take(number)
    return walk.branch


class _Walk:
    """Takes the reports one by one. Thousands of them may come in late: what is asked of each is kept from one to the
    next, the usual distance and how the reports go on behind it."""

    def __init__(self, reports: Sequence[Report], between: Sequence[tuple[int, float]]):
        self.branch = Branch()
        self._reports, self._between = reports, between
        self._later = _Later([report.step for report in reports])
        self._reported: set[float] = set()
        self._furthest = 0  # number of the report that is the last of the branch
        self._room: dict[int, float] = {}  # in the gaps of this report and those that rise behind it, the least

    def take(self, number: int) -> None:
        report, kept = self._reports[number], self.branch.reports
        goes_back = bool(kept) and report.step < kept[-1].step
        if goes_back and self._came_late(number):
            self.branch.late.add(report.at)
            self._put_in(report)
        else:
            self.branch.resumes += goes_back
            self._go_on_from(report)
            self._furthest = number
        self._reported.add(report.step)

    def _put_in(self, report: Report) -> None:
        kept = self.branch.reports
        place = bisect_left(kept, report.step, key=_step)
        if kept[place].step == report.step:
            kept[place] = report
            return
        before = kept[place - 1].step if place else None
        if before is not None:
            self._forget(before, kept[place].step)
            self._learn(before, report.step)
        self._learn(report.step, kept[place].step)
        kept.insert(place, report)

    def _go_on_from(self, report: Report) -> None:
        kept = self.branch.reports
        while kept and kept[-1].step >= report.step:
            gone = kept.pop()
            if kept:
                self._forget(kept[-1].step, gone.step)
        if kept:
            self._learn(kept[-1].step, report.step)
        kept.append(report)

    def _came_late(self, number: int) -> bool:
        report = self._reports[number]
        went_on = _went_on(report, self._between)
        if went_on is not None:
            return went_on
        if report.step in self._reported or self._room_of(report.step) < _ALMOST * self._usual:
            return False
        return not self._was_done_again(number)

    def _was_done_again(self, number: int) -> bool:
        """Whether, before the run gets beyond where it was, one that had been reported comes again, or one that goes on
        from here falls in no gap: whatever came on the way there is of that resume."""
        beyond = self._later.next_higher[self._furthest]
        return self._later.next_again[number] < beyond or self._least_room(number, beyond) < _ALMOST * self._usual

    def _least_room(self, number: int, beyond: int) -> float:
        """In the gaps of those that go on from here. It is the same, seen from each of them: what came in late before
        lies behind."""
        first = number + 1
        if first not in self._room:
            steps = self._later.steps
            end = first
            while end < beyond and steps[end] > steps[end - 1]:
                end += 1
            self._room, least = {end: math.inf}, math.inf
            for later in range(end - 1, number, -1):
                least = min(least, self._room_of(steps[later], steps[later - 1]))
                self._room[later] = least
        return self._room[first]

    def _room_of(self, step: float, before: float = -math.inf) -> float:
        """How far it is from its neighbours on the branch, or from `before`. About as far as these usually are from one
        another, or farther, is a gap."""
        kept = self.branch.reports
        place = bisect_left(kept, step, key=_step)
        if place == 0:  # before all others: begun anew
            return -math.inf
        return min(step - max(kept[place - 1].step, before), kept[place].step - step)

    @cached_property
    def _distances(self) -> list[float]:
        """Between the reports of the branch, sorted: from the first question on, for most logs never go back."""
        return sorted(after.step - before.step for before, after in pairwise(self.branch.reports))

    @property
    def _usual(self) -> float:
        """How far they are from one another."""
        return self._distances[(len(self._distances) - 1) // 2] if self._distances else 0.0

    def _learn(self, before: float, after: float) -> None:
        if "_distances" in self.__dict__:
            insort(self._distances, after - before)

    def _forget(self, before: float, after: float) -> None:
        if "_distances" in self.__dict__:
            del self._distances[bisect_left(self._distances, after - before)]


class _Later:
    """What comes behind each report, by number; the number of reports where nothing does."""

    def __init__(self, steps: list[float]):
        self.steps = steps

    @cached_property
    def next_higher(self) -> list[int]:
        """The next one with a higher step."""
        found = [len(self.steps)] * len(self.steps)
        waiting: list[int] = []
        for number, step in enumerate(self.steps):
            while waiting and self.steps[waiting[-1]] < step:
                found[waiting.pop()] = number
            waiting.append(number)
        return found

    @cached_property
    def next_again(self) -> list[int]:
        """The next one with a step that was reported before this."""
        of_step: dict[float, list[int]] = defaultdict(list)
        for number, step in enumerate(self.steps):
            of_step[step].append(number)
        found: list[int] = []
        coming: list[int] = []
        for number, step in enumerate(self.steps):
            while coming and coming[0] <= number:
                heappop(coming)
            found.append(coming[0] if coming else len(self.steps))
            for later in of_step.pop(step, [])[1:]:
                heappush(coming, later)
        return found


def _went_on(report: Report, between: Sequence[tuple[int, float]]) -> bool | None:
    """Whether the other rows go on behind it where they were; None where they cannot tell."""
    place = bisect_left(between, (report.at, 0.0))
    if not 0 < place < len(between):
        return None
    before, after = between[place - 1][1], between[place][1]
    return None if before <= report.step or before == after else after > before
