"""A metric of a run as a curve over compute: what training logged beside the evaluations, at most so many points of it.

A metric may be logged at every step, and without its compute. Then neighbours are averaged, and the compute of a step
is read between the evaluations of the same run, whose compute is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import text
from sqlalchemy.orm import Session

from forecurve.spent import spent_at

from .curve import Point, validation_curves


@dataclass
class Series:
    """One metric of one run, by rising step; `reward` of a point is the metric's own value.

    Attributes:
        logged: finite values that stand, each step once, by the newest attempt. Neighbours are averaged where they are
            more than `points`.
        least, greatest: of them.
        lost: points left out because nobody says how much compute they took.
    """

    points: list[Point] = field(default_factory=list)
    logged: int = 0
    least: float = np.inf
    greatest: float = -np.inf
    lost: int = 0


def series_of(session: Session, run_ids: Iterable[str], metric: str, most: int) -> dict[str, Series]:
    """The series of one metric of many runs, each in `most` points at most; an empty one where there is none."""
    found: dict[str, Series] = {run_id: Series() for run_id in run_ids}
    rows: dict[str, list[Any]] = defaultdict(list)
    for row in session.execute(_POINTS, {"runs": list(found), "metric": metric, "most": most}):
        rows[row.run_id].append(row)
    unknown = [run_id for run_id, mine in rows.items() if any(row.compute is None for row in mine)]
    evaluated = validation_curves(session, unknown)
    for run_id, mine in rows.items():
        found[run_id] = _series(mine, evaluated.get(run_id, ()))
    return found


def _series(rows: Sequence[Any], evaluated: Sequence[Point]) -> Series:
    steps, computes = [point.step for point in evaluated], [point.compute for point in evaluated]
    spent = [row.compute if row.compute is not None else spent_at(row.place, steps, computes) for row in rows]
    points = [
        Point(row.step, row.attempt, compute, row.value, prompts=None, samples=None, variance=None, time=row.time)
        for row, compute in zip(rows, spent, strict=True)
        if compute is not None
    ]
    return Series(
        points,
        logged=sum(row.logged for row in rows),
        least=min(row.least for row in rows),
        greatest=max(row.greatest for row in rows),
        lost=len(rows) - len(points),
    )


_POINTS = text("""
    -- As for `metric_points`: an attempt counts up to the first step of those after it. Values beyond 1e150 are
    -- clipped, for avg() squares what it is given and fails beyond the largest number.
    WITH begun AS (
      SELECT run_id, attempt, min(step) AS step FROM metric_points
      WHERE run_id = ANY(:runs) AND metric = :metric GROUP BY run_id, attempt
    ), until AS (
      SELECT run_id, attempt, min(step) OVER later AS step FROM begun
      WINDOW later AS (PARTITION BY run_id ORDER BY attempt ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
    ), standing AS (
      SELECT point.run_id, point.attempt, point.step, point.compute, point.value, point.time,
             ntile(:most) OVER (PARTITION BY point.run_id ORDER BY point.step) AS bucket
      FROM metric_points AS point JOIN until ON until.run_id = point.run_id AND until.attempt = point.attempt
      WHERE point.metric = :metric AND (until.step IS NULL OR point.step < until.step)
        AND point.value NOT IN ('NaN', 'Infinity', '-Infinity')
    )
    SELECT run_id, max(attempt) AS attempt, max(step) AS step, avg(step)::float AS place,
           CASE WHEN count(compute) = count(*) THEN avg(compute) END AS compute,
           avg(least(greatest(value, -1e150), 1e150)) AS value, min(value) AS least, max(value) AS greatest,
           max(time) AS time, count(*) AS logged
    FROM standing GROUP BY run_id, bucket ORDER BY run_id, bucket
""")
