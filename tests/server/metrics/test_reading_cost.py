"""What a reader of metrics costs while the tables' statistics know nothing of the run, as they do of every new one."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.orm import Session

from server.metrics.overview import thinned
from tests.server.forecasts.seeds import make_run

STEPS = 400
ATTEMPTS = 3
METRICS = ["loss", "train/reward"]
FILL = text("""
    INSERT INTO metric_points (run_id, metric, attempt, step, compute, value, time)
      SELECT :run_id, metric, attempt, step, step, 1.0, now()
      FROM unnest(CAST(:metrics AS text[])) AS metric, generate_series(1, :attempts) AS attempt,
           generate_series(100 * (attempt - 1), :steps) AS step
""")
READ = text("""
    SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
    FROM pg_stat_xact_user_tables WHERE relname = 'metric_points'
""")


def test_thinning_reads_each_point_no_more_than_a_few_times(session: Session) -> None:
    run = make_run(session)
    session.execute(FILL, {"run_id": run.id, "metrics": METRICS, "attempts": ATTEMPTS, "steps": STEPS})
    points = session.scalar(text("SELECT count(*) FROM metric_points")) or 0
    before = session.scalar(READ) or 0
    found = thinned(session, run.id, METRICS, 10)
    assert [(one.points, len(one.buckets)) for one in found] == [(STEPS + 1, 10)] * 2
    assert (session.scalar(READ) or 0) - before <= 3 * points
