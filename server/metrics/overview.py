"""Whole series thinned out for drawing: however long a run is, a few hundred buckets of it travel.

A bucket keeps the least and the greatest value beside the mean, so that a spike of one step is still seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.orm import Session

from .schemas import Bucket, ThinnedSeries


def thinned(session: Session, run_id: str, metrics: Sequence[str], buckets: int) -> list[ThinnedSeries]:
    """The series of `metrics`, in their order, each in at most `buckets` parts of equally many points.

    As for `metric_points` each step counts once, from the newest attempt. A metric without points has no bucket.
    """
    series = {name: ThinnedSeries(metric=name, points=0, not_finite=0, buckets=[]) for name in metrics}
    values = {"run_id": run_id, "metrics": list(series), "buckets": buckets}
    for name, points, finite, *bucket in session.execute(_BUCKETS, values):
        found = series[name]
        found.points += points
        found.not_finite += points - finite
        found.buckets.append(Bucket(**dict(zip(_COLUMNS, bucket, strict=True))))
    return list(series.values())


_COLUMNS = "step", "compute", "mean", "least", "greatest"

_BUCKETS = text("""
    -- MATERIALIZED: else it is made anew for every point, as long as the table's statistics do not know the run
    WITH begins AS MATERIALIZED (
      SELECT metric, attempt, min(step) AS step FROM metric_points
      WHERE run_id = :run_id AND metric = ANY(:metrics) GROUP BY metric, attempt
    ), standing AS (
      SELECT metric, step, compute, value, value NOT IN ('NaN', 'Infinity', '-Infinity') AS finite,
             ntile(:buckets) OVER (PARTITION BY metric ORDER BY step) AS bucket
      FROM metric_points AS point
      WHERE run_id = :run_id AND metric = ANY(:metrics) AND NOT EXISTS (
        SELECT FROM begins AS newer
        WHERE newer.metric = point.metric AND newer.attempt > point.attempt AND newer.step <= point.step
      )
    )
    SELECT metric, count(*), count(*) FILTER (WHERE finite), max(step), max(compute),
           -- clipped, for avg() squares what it is given and fails beyond the largest number
           avg(least(greatest(value, -1e150), 1e150)) FILTER (WHERE finite),
           min(value) FILTER (WHERE finite), max(value) FILTER (WHERE finite)
    FROM standing GROUP BY metric, bucket ORDER BY metric, bucket
""")
