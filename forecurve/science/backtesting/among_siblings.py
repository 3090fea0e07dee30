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
    like = [kin.past_like(kin.others(at), curve.arm) for at, curve in enumerate(kin.curves)]
    asked: list[dict[Prior, None]] = [{kin.prior(at): None} for at in range(len(kin.curves))]
    under = [
        {other: kin.prior(other, mates=mates, but=at if few else None) for other in others}
        for at, (others, mates) in enumerate(like)
    ]
    for each in under:
        for other, prior in each.items():
            asked[other][prior] = None
    made = [rows_under(curve, fractions, list(asked[at]), tick) for at, curve in enumerate(kin.curves)]
    courses = [Course.of(curve) for curve in kin.curves]
    scaled = []
    for at, curve in enumerate(kin.curves):
        ended = {other: kin.mates_ended(other, kin.curves[other].now, but=at) for other in under[at]}
        told = [(made[other][prior], courses[other], ended[other]) for other, prior in under[at].items()]
        own = kin.mates_ended(at, curve.now)
        scaled.append(
            [
                _scaled(curve, row, [_past(rows[i], course, ends) for rows, course, ends in told], own)
                for i, row in enumerate(made[at][kin.prior(at)])
            ]
        )
    return scaled


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
