"""A backtest of runs that are one another's past.

The other runs at full length give the prior and, where there are at least 3, their own backtests at the same fraction
(each with its own siblings as prior) move and stretch the interval, those most that went like the run so far. A series
with the very same evaluations as another is that run once more, not a sibling of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..curves.curve import Curve
from ..past.analogues import Course
from ..past.conformal import Conformal
from ..past.hindsight import Hindsight, Past
from ..past.kin import Kin
from ..past.mates import Ends
from ..posterior.prior import Prior
from .one_run import early_part, forecasts_from
from .rows import Row

_LEFT_OUT = 24  # runs up to which each has no part in any prior that its forecast hangs on


def among_siblings(kin: Kin, fractions: Sequence[float], tick: Callable[[], None]) -> list[list[Row]]:
    """The rows of each curve: every forecast moved and stretched by how those of the other runs at the same
    fraction turned out.

    The run itself has no part in these either, it is left out of the prior of each; but not of more than `_LEFT_OUT`
    runs, where that would take minutes and a prior hardly hangs on any one.
    """
    courses = [Course.of(curve) for curve in kin.curves]
    made: dict[tuple[int, Prior], list[Row]] = {}

    def rows_of(at: int, mates: bool, but: int | None = None) -> list[Row]:
        prior = kin.prior(at, mates=mates, but=but if len(kin.curves) <= _LEFT_OUT else None)
        if (at, prior) not in made:
            counted = tick if prior == kin.prior(at) else _nobody
            made[at, prior] = forecasts_from(kin.curves[at], fractions, prior, counted)
        return made[at, prior]

    scaled = []
    for at, curve in enumerate(kin.curves):
        like, mates = kin.past_like(kin.others(at), curve.arm)
        ended = [kin.mates_ended(other, kin.curves[other].now, but=at) for other in like]
        others = [(rows_of(other, mates, at), courses[other], ends) for other, ends in zip(like, ended, strict=True)]
        own = kin.mates_ended(at, curve.now)
        scaled.append(
            [
                _scaled(curve, row, [_past(told[i], course, ends) for told, course, ends in others], own)
                for i, row in enumerate(rows_of(at, True))
            ]
        )
    return scaled


def _nobody() -> None:
    """Counts nothing."""


def _past(row: Row, course: Course, mates: Ends) -> Past | None:
    return None if row.raw is None else Past(row.series, row.fraction, row.raw, row.actual, course, mates)


def _scaled(curve: Curve, row: Row, others: Sequence[Past | None], mates: Ends) -> Row:
    if row.raw is None:
        return row
    early = early_part(curve, row.fraction) or curve
    past = [replace(one, run=str(at)) for at, one in enumerate(others) if one is not None]  # names need not be distinct
    conformal = Conformal.of(Hindsight.of(past, row.raw, course=Course.of(early), width=curve.width, mates=mates))
    estimate = conformal.apply(row.raw, curve.bounds)
    return replace(
        row,
        predicted=estimate.median,
        lower=estimate.lower,
        upper=estimate.upper,
        calibration=conformal.label,
    )
