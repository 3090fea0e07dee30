"""Whole series thinned out for drawing: however long a run is, a few hundred buckets of it travel.

A bucket keeps the least and the greatest value beside the mean, so that a spike of one step is still seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.orm import Session

from server.runs.models import Run

from .schemas import Bucket, RunSeries, RunsMetrics, ThinnedSeries
from .service import metric_names


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


def metrics_of_runs(session: Session, runs: Sequence[Run], metrics: Sequence[str], buckets: int) -> RunsMetrics:
    """What was logged by any of the runs, and the `thinned` series of `metrics` of each that has logged them."""
    names = {run.id: metric_names(session, run.id) for run in runs}
    items = [
        RunSeries(run_id=run.id, **dict(series))
        for run in runs
        for series in thinned(session, run.id, [name for name in metrics if name in names[run.id]], buckets)
    ]
    units = {run.compute_unit for run in runs}
    unit = units.pop() if len(units) == 1 else None
    return RunsMetrics(unit=unit, metrics=sorted({name for each in names.values() for name in each}), items=items)


_COLUMNS = "step", "compute", "mean", "least", "greatest"

_BUCKETS = text("""
    -- metric by metric, in the order of the primary key: by attempt and step, which is that of steps alone where each
    -- attempt counts up to the first step of those after it. So nothing is sorted.
    SELECT asked.metric, bucketed.points, bucketed.finite, bucketed.step, bucketed.compute, mean, least, greatest
    FROM unnest(CAST(:metrics AS text[])) AS asked (metric)
    CROSS JOIN LATERAL (
      SELECT array_agg(step ORDER BY attempt) AS step FROM (
        SELECT attempt, min(first) OVER (ORDER BY attempt ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS step
        FROM (
          SELECT attempt, (
            SELECT min(step) FROM metric_points AS point
            WHERE run_id = :run_id AND point.metric = asked.metric AND point.attempt = made.attempt
          ) AS first
          FROM generate_series(0, (
            SELECT max(attempt) FROM metric_points AS point WHERE run_id = :run_id AND point.metric = asked.metric
          )) AS made (attempt)
        ) AS begins
      ) AS ends
    ) AS until
    CROSS JOIN LATERAL (
      SELECT bucket, count(*) AS points, count(*) FILTER (WHERE finite) AS finite, max(step) AS step,
             max(compute) AS compute,
             -- clipped, for avg() squares what it is given and fails beyond the largest number
             avg(least(greatest(value, -1e150), 1e150)) FILTER (WHERE finite) AS mean,
             min(value) FILTER (WHERE finite) AS least, max(value) FILTER (WHERE finite) AS greatest
      FROM (
        SELECT step, compute, value, value NOT IN ('NaN', 'Infinity', '-Infinity') AS finite,
               ntile(:buckets) OVER (ORDER BY attempt, step) AS bucket
        FROM metric_points AS point
        WHERE run_id = :run_id AND point.metric = asked.metric
          AND (until.step[attempt + 1] IS NULL OR point.step < until.step[attempt + 1])
      ) AS standing
      GROUP BY bucket
    ) AS bucketed
    ORDER BY asked.metric, bucketed.bucket
""")
