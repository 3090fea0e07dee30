"""However often and in whatever order batches come, the rows are those of each batch once."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.metrics.models import Evaluation, IngestBatch, MetricPoint
from server.runs.models import Run
from tests.server.reporting import Headers, Reporter, evaluation, external_run

BATCHES = st.lists(st.tuples(st.integers(0, 3), st.lists(st.floats(0, 1), max_size=3)), min_size=1, max_size=5)
"""For each batch the number of points, and the rewards of its evaluations."""

NEW_YEAR = "2026-01-01T00:00:00Z"


def _batches(shapes: list[tuple[int, list[float]]]) -> list[dict[str, Any]]:
    step, batches = 0, []
    for seq, (points, rewards) in enumerate(shapes, start=1):
        steps = [step + index for index in range(max(points, len(rewards)))]
        step += len(steps)
        batches.append(
            {
                "seq": seq,
                "points": [
                    {"metric": "loss", "step": s, "value": s / 3, "time": "2026-01-01T00:00:00Z"}
                    for s in steps[:points]
                ],
                "evaluations": [evaluation(s, reward=r, time=NEW_YEAR) for s, r in zip(steps, rewards, strict=False)],
            }
        )
    return batches


def _stored(sessions: sessionmaker[Session], run_id: str) -> tuple[Any, ...]:
    with sessions() as session:
        evaluations = select(Evaluation.step, Evaluation.compute, Evaluation.reward).where(Evaluation.run_id == run_id)
        points = select(MetricPoint.metric, MetricPoint.step, MetricPoint.value).where(MetricPoint.run_id == run_id)
        batches = select(IngestBatch.seq, IngestBatch.digest).where(IngestBatch.run_id == run_id)
        run = session.get_one(Run, run_id)
        parts = [sorted(tuple(row) for row in session.execute(query)) for query in (evaluations, points, batches)]
        return (*parts, (run.last_step, run.last_compute, run.last_reward))


@pytest.fixture
def pair(api: TestClient, headers: Headers) -> Any:
    return lambda: (external_run(api, headers), external_run(api, headers))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shapes=BATCHES, data=st.data())
def test_any_order_with_any_replays_gives_the_rows_of_each_batch_once(
    pair: Any, sessions: sessionmaker[Session], shapes: list[tuple[int, list[float]]], data: st.DataObject
) -> None:
    batches = _batches(shapes)
    orderly, disorderly = pair()
    for batch in batches:
        assert orderly.post("metrics", batch).json()["duplicate"] is False
    replays = data.draw(st.lists(st.sampled_from(batches), max_size=5))
    seen: set[int] = set()
    for batch in data.draw(st.permutations(batches + replays)):
        answer = disorderly.post("metrics", batch)
        assert answer.status_code == 200, answer.text
        assert answer.json()["duplicate"] is (batch["seq"] in seen)
        seen.add(batch["seq"])
    assert _stored(sessions, disorderly.run_id) == _stored(sessions, orderly.run_id)
    _is_complete(sessions, disorderly, batches)


def _is_complete(sessions: sessionmaker[Session], run: Reporter, batches: list[dict[str, Any]]) -> None:
    evaluations, points, taken, _ = _stored(sessions, run.run_id)
    assert len(evaluations) == sum(len(batch["evaluations"]) for batch in batches)
    assert len(points) == sum(len(batch["points"]) for batch in batches)
    assert len(taken) == len(batches)
