"""A backtest of runs that are one another's past.

The other runs at full length give the prior and, where there are at least 3, their own backtests at the same fraction
(each with its own siblings as prior) move and stretch the interval, those most that went like the run so far. A series
with the very same evaluations as another is that run once more, not a sibling of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from ..past.analogues import Course
from ..past.conformal import Conformal
from ..past.hindsight import Hindsight, Past, most_alike
from ..past.kin import Kin
from ..posterior.prior import Prior
from .one_run import early_part, rows_under
from .rows import Row

_LEFT_OUT = 24  # runs up to which each has no part in any prior that its forecast hangs on


def among_siblings(kin: Kin, fractions: Sequence[float], tick: Callable[[], None]) -> list[list[Row]]:
    """The rows of each curve: every forecast moved and stretched by how those of the other runs at the same
    fraction turned out.

    The run itself has no part in these either, it is left out of the prior of each; but not of more than `_LEFT_OUT`
    runs, where that would take minutes and a prior hardly hangs on any one.
    """
    few = len(kin.curves) <= _LEFT_OUT
    prior = cache(kin.prior)
    like = [kin.past_like(kin.others(at), curve.arm) for at, curve in enumerate(kin.curves)]
    asked: list[dict[Prior, None]] = [{prior(at): None} for at in range(len(kin.curves))]
    under = [
        {other: prior(other, mates=mates, but=at if few else None) for other in others}
        for at, (others, mates) in enumerate(like)
    ]
    for each in under:
        for other, one in each.items():
            asked[other][one] = None
    made = [rows_under(curve, fractions, list(asked[at]), tick) for at, curve in enumerate(kin.curves)]
    courses = [Course.of(curve) for curve in kin.curves]
    scaled = []
    for at, told in enumerate(under):
        rows = [{other: made[other][one][i] for other, one in told.items()} for i in range(len(fractions))]
        scaled.append([_scaled(kin, at, row, rows[i], courses) for i, row in enumerate(made[at][prior(at)])])
    return scaled


def _scaled(kin: Kin, at: int, row: Row, told: dict[int, Row], courses: Sequence[Course]) -> Row:
    """The forecast of the run at this place by those of others, by their places, and how they went."""
    if row.raw is None:
        return row
    curve = kin.curves[at]
    course = Course.of(early_part(curve, row.fraction) or curve)
    known = [other for other, one in told.items() if one.raw is not None]
    asked, _ = most_alike([courses[other] for other in known], course)
    past = [_past(kin, known[place], told[known[place]], courses, but=at) for place in asked]
    mates = kin.mates_ended(at, curve.now)
    conformal = Conformal.of(Hindsight.of(past, row.raw, course=course, width=curve.width, mates=mates))
    estimate = conformal.apply(row.raw, curve.bounds)
    return replace(
        row,
        predicted=estimate.median,
        lower=estimate.lower,
        upper=estimate.upper,
        calibration=conformal.label,
    )


def _past(kin: Kin, at: int, row: Row, courses: Sequence[Course], *, but: int) -> Past:
    assert row.raw is not None
    ended = kin.mates_ended(at, kin.curves[at].now, but=but)
    return Past(str(at), row.fraction, row.raw, row.actual, courses[at], ended)  # names need not be distinct
