"""Where many curves lie together: counted by the database, for thousands of curves are too many to draw or to send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ARRAY, Float, case, cast, func, literal, select
from sqlalchemy.orm import Session

from .curve import in_curves
from .models import Evaluation

A_DECADE = 16
"""Places to a factor of ten in compute: evaluations closer together than 15 % are one."""

_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Place:
    """The pass rates of so many runs near one compute: the median, and what a half and 90 % of the runs lie between."""

    compute: float
    runs: int
    lower90: float
    lower50: float
    median: float
    upper50: float
    upper90: float


def spread(session: Session, run_ids: Sequence[str]) -> list[Place]:
    """The places of the curves of runs along compute. Each run counts once a place, by the mean of what it was
    evaluated to there; a start, at compute 0, is a place of its own.

    The runs are named, not selected: so the database sees how few of all evaluations are theirs, and reads no others.
    """
    place = case((Evaluation.compute > 0, func.floor(A_DECADE * func.log(func.nullif(Evaluation.compute, 0)))))
    near = func.avg(Evaluation.compute).label("compute"), func.avg(Evaluation.reward).label("reward")
    each = (
        select(place.label("place"), *near).where(*in_curves(run_ids)).group_by("place", Evaluation.run_id).subquery()
    )
    shares = cast(literal(list(_SHARES)), ARRAY(Float))
    found = select(func.avg(each.c.compute), func.count(), func.percentile_cont(shares).within_group(each.c.reward))
    rows = session.execute(found.group_by(each.c.place).order_by(each.c.place.nulls_first()))
    return [Place(compute, runs, *rates) for compute, runs, rates in rows]
