"""Hindsight: how forecasts of past runs turned out, told for one new run.

Each past run gives one forecast, made at about the same share of what the run spent in the end, and what came. Of many
runs those are asked that went most like the new one. What they got wrong is a Gaussian process over how runs went
(`analogues`); it gives the new forecast's expected error and how much of it is shared with past ones. From it
`Conformal` makes the interval of the end, and `advise` the gain that is still to be had.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import FloatArray
from ..checks import check_estimate, check_kind, check_positive, check_width, is_finite, short
from ..errors import PriorError
from ..posterior.prior import TELLING_RUNS
from ..values import SDS_TO_A_SIDE, Estimate
from .analogues import Course, Errors, expected_errors, nearest
from .gains import share_taken
from .mates import Drawn, Ends, drawn_to_ends

MOST_RUNS = 40
"""Of more past runs those are asked that went most like the new one."""
BINS = (0.0, 0.175, 0.375, 0.75, 1.0)
"""Forecasts are compared with past ones of the same range of the share of what is spent in the end: about 0.1, 0.25,
0.5, later."""

_LEAST_WIDTH = 1e-9  # of the range


@dataclass(frozen=True)
class Past:
    """One past forecast, and what came.

    Attributes:
        run: whose it was; a run counts once.
        fraction: the share of what the run spent in the end at which it was made.
        estimate: the posterior's own median and 90 % interval of how the run would end.
        actual: how it ended.
        course: how the run went, from its start to its end; None where that is not known.
        mates: how the other finished seeds of its arm ended.
    """

    run: str
    fraction: float
    estimate: Estimate
    actual: float
    course: Course | None = None
    mates: Ends = ()


@dataclass(frozen=True, eq=False)
class Hindsight:
    """What past forecasts got wrong, told for one new forecast. All in units of reward.

    Attributes:
        estimate: the new forecast: the posterior's own median and 90 % interval of how the run will end.
        known: the past forecasts that are asked, one a run; empty where they are fewer than 3.
        wrong: what came less the median, of each of them, shape (n,).
        sds: of their posteriors and, last, of the new one, shape (n + 1,).
        errors: expected errors; None where nobody is asked.
        mates: how the other finished seeds of its arm ended.
        scale: the width of the range of rewards.
        ahead: how seeds of its arm are expected to end that are still on their way, far ahead of it.
    """

    estimate: Estimate
    known: tuple[Past, ...]
    wrong: FloatArray
    sds: FloatArray
    errors: Errors | None
    mates: Ends = ()
    scale: float = 1.0
    ahead: tuple[Estimate, ...] = ()

    @classmethod
    def of(
        cls,
        past: Iterable[Past],
        estimate: Estimate,
        *,
        course: Course | None = None,
        fraction: float | None = None,
        width: float = 1.0,
        mates: Ends = (),
        ahead: Sequence[Estimate] = (),
    ) -> Hindsight:
        """What past runs say.

        Args:
            past: finished runs on the same metric. Each counts once, with its forecast nearest to `fraction`.
            estimate: the posterior's own forecast of the new run.
            course: how the new run went so far. Likeness counts where it is known of the new run and all past ones.
            fraction: the share of its budget that the new run has spent; only past forecasts of the same range (see
                `BINS`) are asked. All where left out.
            width: of the range of rewards.
            mates: how the other finished seeds of the new run's arm ended, at its budget.
            ahead: how those are expected to end there that are not finished but far ahead; asked where none is.

        Raises:
            PriorError: one of these that cannot be: an estimate out of order, an end or a share that is no number.
        """
        check_kind("past", past, Iterable, "pass a list of Past", PriorError)
        past = list(past)
        _check(past, estimate, fraction, width, mates, ahead)
        known, paths = _asked(_one_a_run(past, fraction), course)
        said = [*(one.estimate for one in known), estimate]
        wrong = np.array([one.actual - one.estimate.median for one in known])
        sds = np.array([max(one.width, _LEAST_WIDTH * width) / (2 * SDS_TO_A_SIDE) for one in said])
        if len(known) < TELLING_RUNS:
            return cls(estimate, (), wrong[:0], sds[-1:], None)
        medians = np.array([one.median for one in said]) / width
        errors = expected_errors(wrong / width, medians, sds / width, None if paths is None else paths / width)
        return cls(estimate, tuple(known), wrong, sds, errors.times(width), mates, width, tuple(ahead))

    @property
    def runs(self) -> int:
        """How many past runs are asked."""
        return len(self.known)

    @cached_property
    def taken(self) -> tuple[FloatArray, FloatArray]:
        """What is taken of the expected errors: by how much forecasts are moved, past ones and, last, the new one, and
        how many times as wide they are then, each of shape (n + 1,)."""
        if self.errors is None:
            return np.zeros(1), np.ones(1)
        expected, told = self.errors.left_out[0], np.append(self.errors.left_out[1], self.errors.new[1])
        share = share_taken(self.wrong, expected)
        return share * np.append(expected, self.errors.new[0]), (told / self.sds) ** share

    @cached_property
    def drawn(self) -> Drawn:
        """How far they are then drawn to the ends of their arms' other seeds."""
        return self._drawn_to(self.mates)

    @cached_property
    def lean(self) -> float:
        """How far the new one is then drawn to where seeds of its arm are expected to end that are far ahead of it."""
        if self.mates or not self.ahead:
            return 0.0
        doubt = math.sqrt(np.mean([(one.width / (2 * SDS_TO_A_SIDE)) ** 2 for one in self.ahead]))
        return float(self._drawn_to([one.median for one in self.ahead], doubt).move[-1])

    def _drawn_to(self, own: Ends, doubt: float = 0.0) -> Drawn:
        moved, wider = self.taken
        medians = np.array([*(one.estimate.median for one in self.known), self.estimate.median])
        mates = [*(one.mates for one in self.known), own]
        return drawn_to_ends(medians + moved, self.sds * wider, medians[:-1] + self.wrong, mates, self.scale, doubt)

    @property
    def shift(self) -> float:
        """By how much the run is expected to gain more than its forecast says, for what it shares with past ones, or
        where the other seeds of its arm ended higher. That they ended lower makes its gain less sure, not less: it may
        stand above them already."""
        shared = 0.0 if self.errors is None else self.errors.shared[0]
        return shared + max(self._by_seeds, 0.0)

    @property
    def sd(self) -> float:
        """How unsure that is: of what other seeds tell, by as much as it is. What a run does by itself is not in it."""
        shared = 0.0 if self.errors is None else self.errors.shared[1]
        return float(np.hypot(shared, self._by_seeds))

    @property
    def seeds_ahead(self) -> int:
        """How many seeds of its arm that are still on their way have a say in where it ends."""
        return len(self.ahead) if self.lean else 0

    @property
    def _by_seeds(self) -> float:
        return float(self.drawn.move[-1]) + self.lean


def _check(
    past: Sequence[Past],
    estimate: Estimate,
    fraction: float | None,
    width: float,
    mates: Ends,
    ahead: Sequence[Estimate],
) -> None:
    """A number that is none would make every expected error one."""
    check_estimate("estimate", estimate, PriorError)
    check_positive("width", width, PriorError, "give the width of the range of rewards")
    check_width("width", width, width)
    if fraction is not None:
        check_positive("fraction", fraction, PriorError, "give the share of its budget that the run has spent")
    for at, one in enumerate(past):
        check_kind(f"past[{at}]", one, Past, "pass Past(run, fraction, estimate, actual)", PriorError)
        check_estimate(f"past[{at}].estimate", one.estimate, PriorError)
        _check_finite(f"past[{at}].fraction", one.fraction)
        _check_finite(f"past[{at}].actual", one.actual)
        _check_ends(f"past[{at}].mates", one.mates)
    _check_ends("mates", mates)
    for at, expected in enumerate(ahead):
        check_estimate(f"ahead[{at}]", expected, PriorError)


def _check_ends(field: str, ends: Ends) -> None:
    for at, end in enumerate(ends):
        _check_finite(f"{field}[{at}]", end)


def _check_finite(field: str, value: object) -> None:
    if not is_finite(value):
        raise PriorError(field, short(value), "a finite number is needed", "leave that run out")


def told_by(runs: int, seeds_ahead: int) -> str:
    """Who tells, in words.

    >>> told_by(12, 0), told_by(12, 1)
    ('12 past runs', '12 past runs and 1 of its seeds further along')
    """
    return f"{runs} past runs" + (f" and {seeds_ahead} of its seeds further along" if seeds_ahead else "")


def _asked(known: list[Past], course: Course | None) -> tuple[list[Past], FloatArray | None]:
    """The past runs that went most like the new one, with the paths of all; the last ones where that is not known."""
    went = [one.course for one in known if one.course is not None]
    if course is None or len(went) < max(len(known), 1):
        return known[-MOST_RUNS:], None
    closest, paths = most_alike(went, course)
    return [known[at] for at in closest], paths[[*closest, len(known)]]


def most_alike(courses: Sequence[Course], course: Course) -> tuple[list[int], FloatArray]:
    """The places of the `MOST_RUNS` runs that went most like the new one; the paths of all, and last the new one's."""
    now = float(course.compute[-1])
    paths = np.array([one.path(now) for one in (*courses, course)])
    return nearest(paths, MOST_RUNS), paths


def _one_a_run(past: Sequence[Past], fraction: float | None) -> list[Past]:
    closest: dict[str, Past] = {}
    for one in past:
        if fraction is not None and bin_of(one.fraction) != bin_of(fraction):
            continue
        known = closest.get(one.run)
        if known is None or (fraction is not None and _apart(one, fraction) < _apart(known, fraction)):
            closest[one.run] = one
    return list(closest.values())


def _apart(one: Past, fraction: float) -> float:
    return abs(one.fraction - fraction)


def bin_of(fraction: float) -> int:
    """Which range of `BINS` a share of what is spent in the end lies in; beyond the end counts as the last.

    >>> [bin_of(fraction) for fraction in (0.1, 0.25, 0.5, 0.9, 1.2)]
    [0, 1, 2, 3, 3]
    """
    return int(np.clip(np.searchsorted(BINS, fraction, side="right") - 1, 0, len(BINS) - 2))
