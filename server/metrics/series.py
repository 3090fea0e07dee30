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
    """One metric of one run, by rising step; `reward` of a point is the metric's own value, or the mean of neighbours.

    Attributes:
        logged: finite values that stand, each step once, by the newest attempt.
        lost: how many of them are left out because nobody says how much compute they took.
        least, greatest: of the others.
    """

    points: list[Point] = field(default_factory=list)
    logged: int = 0
    lost: int = 0
    least: float = np.inf
    greatest: float = -np.inf

    @property
    def is_thinned(self) -> bool:
        """Whether points are means."""
        return self.logged - self.lost > len(self.points)


def series_of(session: Session, run_ids: Iterable[str], metric: str, most: int) -> dict[str, Series]:
    """The series of one metric of many runs, each in `most` points at most; an empty one where there is none.

    Of a fork, what it has logged itself.
    """
    asked = list(dict.fromkeys(run_ids))
    rows: dict[str, list[Any]] = defaultdict(list)
    for row in session.execute(_POINTS, {"runs": asked, "metric": metric, "most": most}):
        rows[row.run_id].append(row)
    unknown = [run_id for run_id, mine in rows.items() if any(row.compute is None for row in mine)]
    evaluated = validation_curves(session, unknown)
    return {run_id: _series(rows[run_id], evaluated.get(run_id, ())) for run_id in asked}


def _series(rows: Sequence[Any], evaluated: Sequence[Point]) -> Series:
    steps, spent = [point.step for point in evaluated], [point.compute for point in evaluated]
    series = Series(logged=sum(row.logged for row in rows))
    for row in rows:
        compute = row.compute
        if compute is None and not row.lost:
            compute = spent_at(row.middle, steps, spent)
        if compute is None:
            series.lost += row.logged
            continue
        value = min(max(row.value, row.least), row.greatest)  # a mean is rounded, and may lie beyond what it is of
        series.points.append(
            Point(row.step, row.attempt, compute, value, prompts=None, samples=None, variance=None, time=row.time)
        )
        series.least, series.greatest = min(series.least, row.least), max(series.greatest, row.greatest)
    return series


_POINTS = text("""
    -- An attempt counts up to where a later one began, by this metric or by its evaluations. So the order of the
    -- primary key, by attempt and step, is that of steps, and nothing is sorted. Values beyond 1e150 are clipped, for
    -- avg() squares what it is given and fails beyond the largest number. What nobody says the compute of is told apart
    -- before neighbours are averaged, and those whose compute is logged are not averaged with others.
    WITH asked AS (
      SELECT run_id FROM unnest(CAST(:runs AS text[])) AS given (run_id)
    ), begun AS (
      SELECT asked.run_id, made.attempt, min(first.step) AS step, min(first.compute) AS compute
      FROM asked
      CROSS JOIN LATERAL generate_series(0, greatest(
        -1,
        (SELECT max(attempt) FROM metric_points AS point WHERE point.run_id = asked.run_id AND metric = :metric),
        (SELECT max(attempt) FROM evaluations WHERE evaluations.run_id = asked.run_id)
      )) AS made (attempt)
      LEFT JOIN LATERAL (
        (SELECT step, compute FROM metric_points AS point
         WHERE point.run_id = asked.run_id AND metric = :metric AND point.attempt = made.attempt
         ORDER BY step LIMIT 1)
        UNION ALL
        (SELECT step, compute FROM evaluations
         WHERE evaluations.run_id = asked.run_id AND made.attempt > 0 AND evaluations.attempt = made.attempt
         ORDER BY step LIMIT 1)
      ) AS first ON true
      GROUP BY asked.run_id, made.attempt
    ), until AS (
      SELECT run_id, array_agg(step ORDER BY attempt) AS step, array_agg(compute ORDER BY attempt) AS compute
      FROM (
        SELECT run_id, attempt, min(step) OVER later AS step, min(compute) OVER later AS compute FROM begun
        WINDOW later AS (PARTITION BY run_id ORDER BY attempt ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
      ) AS ends GROUP BY run_id
    )
    SELECT until.run_id, bucketed.*
    FROM until
    CROSS JOIN LATERAL (SELECT coalesce((
      SELECT step FROM evaluations WHERE evaluations.run_id = until.run_id ORDER BY attempt DESC, step DESC LIMIT 1
    ), -1) AS step) AS evaluated
    CROSS JOIN LATERAL (
      SELECT round(avg(step))::bigint AS step, max(attempt) AS attempt, avg(step)::float AS middle,
             avg(compute) AS compute, avg(least(greatest(value, -1e150), 1e150)) AS value,
             min(value) AS least, max(value) AS greatest, max(time) AS time, count(*) AS logged, lost
      FROM (
        SELECT point.*, ntile(:most) OVER (PARTITION BY lost ORDER BY attempt, step) AS bucket
        FROM (
          SELECT attempt, step, compute, value, time, compute IS NULL AND point.step > evaluated.step AS lost
          FROM metric_points AS point
          WHERE point.run_id = until.run_id AND point.metric = :metric
            AND coalesce(point.step < until.step[point.attempt + 1], true)
            AND coalesce(point.compute < until.compute[point.attempt + 1], true)
            AND value NOT IN ('NaN', 'Infinity', '-Infinity')
        ) AS point
      ) AS standing
      GROUP BY lost, CASE WHEN NOT lost THEN bucket END, compute IS NULL
    ) AS bucketed
    ORDER BY until.run_id, bucketed.step
""")
