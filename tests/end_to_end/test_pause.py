"""A pause from the API's door to the last step of the resumed run, against a run that nobody paused."""

from __future__ import annotations

import time

import pytest

from tests.end_to_end.cluster import Cluster, Job, cluster
from tests.trainer.conftest import SMALL
from tests.worker.harness import ray, world

__all__ = ["cluster", "ray", "world"]

STEPS = 24
CHANGES = SMALL | {"budget.compute": STEPS, "evaluation.every_steps": 1, "checkpoint.every_steps": 7}


@pytest.mark.slow  # 40 s; the pause itself is in tests/worker, the exact resume in tests/trainer
def test_a_paused_run_goes_on_as_if_nobody_had_paused_it(cluster: Cluster) -> None:
    api = cluster.api
    whole = api.create_run({"preset": "scalerl", "changes": CHANGES})["id"]
    assert cluster.run_next() == 0
    run = api.create_run({"preset": "scalerl", "changes": CHANGES})["id"]
    job = cluster.start_next()
    _wait_for_step(cluster, job, run, 2)
    assert api.pause_run(run, "others first")["desired_state"] == "pause"
    cluster.reconcile()
    assert api.run(run)["status"] == "pausing"
    assert cluster.end(job) == 0
    paused = api.run(run)
    reached = paused["last_step"]
    assert (paused["status"], paused["desired_state"], paused["finished_at"]) == ("paused", "pause", None)
    assert (
        paused["reason"] == f"Paused as asked: others first. Resumed, it goes on from its checkpoint of step {reached}."
    )
    assert 2 <= reached < STEPS
    assert cluster.world.admit() == [], "it stays paused"
    assert api.resume_run(run)["status"] == "queued"
    assert cluster.run_next() == 0
    done = api.run(run)
    assert (done["status"], done["attempt"], done["last_step"]) == ("succeeded", 2, STEPS)
    assert cluster.evaluations(run) == cluster.evaluations(whole), "no point twice, none missing, the same weights"


def _wait_for_step(cluster: Cluster, job: Job, run_id: str, step: int) -> None:
    for _ in range(600):
        if (cluster.api.run(run_id)["progress"]["step"] or 0) >= step:
            return
        assert job.process.poll() is None, "the trainer ended before it came to the step"
        time.sleep(0.1)
    raise AssertionError(f"step {step} was not reported within a minute")
