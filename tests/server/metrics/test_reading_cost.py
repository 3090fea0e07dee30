"""What reading metrics costs while the tables' statistics know nothing of the run, as they do of every new one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from server.errors import Invalid
from server.metrics.ingest import take_batch
from server.metrics.overview import thinned
from server.metrics.schemas import Batch
from server.runs.models import Attempt
from tests.server.forecasts.seeds import make_run

NOW = datetime(2026, 1, 2, tzinfo=UTC)
STEPS = 400
ATTEMPTS = 3
METRICS = ["loss", "train/reward"]
FILL = text("""
    INSERT INTO metric_points (run_id, metric, attempt, step, compute, value, time)
      SELECT :run_id, metric, attempt, step, step, 1.0, now()
      FROM unnest(CAST(:metrics AS text[])) AS metric, generate_series(1, :attempts) AS attempt,
           generate_series(100 * (attempt - 1), :steps) AS step
""")
EVALUATE = text("""
    INSERT INTO evaluations (run_id, attempt, step, compute, reward, details, time)
      SELECT :run_id, 1, step, step, 0.5, '{}', now() FROM generate_series(1, :steps) AS step
""")
READ = text("""
    SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
    FROM pg_stat_xact_user_tables WHERE relname = :table
""")


def _read(session: Session, table: str) -> int:
    return session.scalar(READ, {"table": table}) or 0


def test_thinning_reads_each_point_once(session: Session) -> None:
    run = make_run(session)
    session.execute(FILL, {"run_id": run.id, "metrics": METRICS, "attempts": ATTEMPTS, "steps": STEPS})
    points = session.scalar(text("SELECT count(*) FROM metric_points")) or 0
    before = _read(session, "metric_points")
    found = thinned(session, run.id, METRICS, 10)
    assert [(one.points, len(one.buckets)) for one in found] == [(STEPS + 1, 10)] * 2
    assert _read(session, "metric_points") - before <= 1.1 * points


def test_one_more_evaluation_of_a_long_run_reads_a_few_of_those_before_it(session: Session) -> None:
    run = make_run(session)
    session.add(Attempt(run_id=run.id, number=1))
    session.execute(EVALUATE, {"run_id": run.id, "steps": 3000})
    before = _read(session, "evaluations")
    take_batch(session, run.id, _batch(1, 3001), now=NOW)
    assert _read(session, "evaluations") - before <= 10
    with pytest.raises(Invalid, match="more at step 0 than the 1 at the later step 1"):
        take_batch(session, run.id, _batch(2, 0, compute=2.0), now=NOW)


def _batch(seq: int, step: int, compute: float | None = None) -> Batch:
    told = {"step": step, "compute": float(step) if compute is None else compute, "reward": 0.5}
    return Batch.model_validate({"attempt": 1, "seq": seq, "evaluations": [told]})
