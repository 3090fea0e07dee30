"""A run that MLflow's client reports and that ends without a word: its last pass rate waits for its compute no more."""

from __future__ import annotations

from sqlalchemy import select

from server.metrics.models import Evaluation
from server.mlflow import runs
from server.mlflow.numbers import take
from server.mlflow.schemas import Batch, Number, RunCreate, Tag
from server.runs.service import current_attempt, lock_run
from tests.worker.harness import World


def test_the_last_evaluation_is_made_when_the_run_is_taken_for_dead(world: World) -> None:
    said = {"metric": "acc", "compute": "hours", "unit": "GPU-hours"}
    tags = [Tag(key=f"forecurve.{name}", value=value) for name, value in said.items()]
    with world.sessions.begin() as session:
        run_id = runs.create(session, RunCreate(tags=tags), actor="test", now=world.now).run_id
        current_attempt(session, lock_run(session, run_id)).created_at = world.now  # by the test's clock too
        logged = [("acc", 0.1, 1), ("hours", 1.0, 1), ("acc", 0.2, 2)]
        metrics = [Number(key=name, value=value, step=step) for name, value, step in logged]
        take(session, Batch(run_id=run_id, metrics=metrics), actor="test", now=world.now)

    def curve() -> list[tuple[int, float, float]]:
        with world.sessions() as session:
            mine = select(Evaluation.step, Evaluation.compute, Evaluation.reward).where(Evaluation.run_id == run_id)
            return [tuple(row) for row in session.execute(mine.order_by(Evaluation.step))]

    assert curve() == [(1, 1.0, 0.1)]
    world.reconcile_for(700, every_s=10)
    assert world.run(run_id).status == "suspect"
    world.wait(8 * 86_400)
    world.reconcile_for(700, every_s=10)
    assert world.run(run_id).status == "failed"
    assert curve() == [(1, 1.0, 0.1), (2, 1.0, 0.2)]
