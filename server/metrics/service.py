"""Reading metric points. A run that resumed from a checkpoint went over some steps again: readers get each step once.

A point of an older attempt is superseded when it lies at or past the first step at which a newer attempt reported the
same metric; what lies before is still the run's own past. (The validation curve is read by curve.py.)
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, or_, select, text
from sqlalchemy.orm import Session

from .models import MetricPoint


def metric_names(session: Session, run_id: str) -> list[str]:
    """Names of the metrics that a run has reported.

    Walks the primary key from name to name, so that it costs one step a name and not one a point.
    """
    return list(session.scalars(_NAMES, {"run_id": run_id}))


def metric_points(
    session: Session, run_id: str, metric: str, *, since_step: int, limit: int
) -> tuple[Sequence[MetricPoint], int | None]:
    """At most `limit` points of one metric by rising step, each step once, from the newest attempt; and the step from
    which on there are more, None at the end."""
    mine = MetricPoint.run_id == run_id, MetricPoint.metric == metric
    firsts = select(MetricPoint.attempt, func.min(MetricPoint.step)).where(*mine).group_by(MetricPoint.attempt)
    wanted = []
    until: int | None = None  # first step of the newer attempts; what an older one has from there on is superseded
    for attempt, first in sorted(session.execute(firsts).all(), reverse=True):
        part = MetricPoint.attempt == attempt
        wanted.append(part if until is None else part & (MetricPoint.step < until))
        until = first if until is None else min(first, until)
    if not wanted:
        return [], None
    query = select(MetricPoint).where(*mine, MetricPoint.step >= since_step, or_(*wanted))
    rows = session.scalars(query.order_by(MetricPoint.step).limit(limit + 1)).all()
    return rows[:limit], rows[limit].step if len(rows) > limit else None


_NAMES = text("""
    WITH RECURSIVE name (metric) AS (
      (SELECT metric FROM metric_points WHERE run_id = :run_id ORDER BY metric LIMIT 1)
      UNION ALL
      SELECT (SELECT metric FROM metric_points WHERE run_id = :run_id AND metric > name.metric ORDER BY metric LIMIT 1)
      FROM name WHERE name.metric IS NOT NULL
    )
    SELECT metric FROM name WHERE metric IS NOT NULL
""")
