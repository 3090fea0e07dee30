"""A fork from the API's door to its last step."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.end_to_end.cluster import Cluster, checkpoint, cluster
from tests.trainer.conftest import SMALL
from tests.worker.harness import ray, world

__all__ = ["cluster", "ray", "world"]

STEPS = {"budget.compute": 6, "checkpoint.every_steps": 2, "checkpoint.keep_last": 3}
CHANGES = {"optimizer.learning_rate": 1e-3, "budget.compute": 8}


@pytest.mark.slow  # 25 s; the doors are in tests/server/runs, the fork itself in tests/trainer
def test_a_fork_goes_on_from_its_parents_checkpoint_and_fails_by_name_when_that_is_gone(
    cluster: Cluster, tmp_path: Path
) -> None:
    parent = cluster.api.create_run({"preset": "scalerl", "changes": SMALL | STEPS})["id"]
    assert cluster.run_next() == 0
    assert cluster.api.run(parent)["status"] == "succeeded"
    child = _check_a_fork(cluster, parent)
    origin = json.loads((tmp_path / "runs" / child / "origin.json").read_text())
    begin = checkpoint(cluster.api, parent, step=4)
    assert (origin["parent"], origin["checkpoint_digest"]) == (begin["path"], begin["digest"])
    assert set(origin["changes"]) == set(CHANGES)
    _check_a_fork_from_a_deleted_checkpoint(cluster, parent)


def _check_a_fork(cluster: Cluster, parent: str) -> str:
    """It goes on by step, compute and weights, and writes checkpoints of its own."""
    child = cluster.api.fork_run(parent, {"step": 4, "changes": CHANGES})
    assert (child["status"], child["parent"]["step"]) == ("queued", 4)
    assert cluster.run_next() == 0
    found = cluster.api.run(child["id"])
    assert (found["status"], found["last_step"], found["last_compute"]) == ("succeeded", 8, 8.0)
    theirs, ours = cluster.evaluations(parent), cluster.evaluations(child["id"])
    assert [(step, compute) for step, compute, _ in ours] == [(4, 4.0), (6, 6.0), (8, 8.0)]
    assert ours[0] == theirs[2], "the same weights, judged on the same prompts"
    assert [fork["id"] for fork in cluster.api.forks(parent)] == [child["id"]]
    own = checkpoint(cluster.api, child["id"], step=8)
    assert Path(own["path"]).parents[1].name == child["id"]
    return str(child["id"])


def _check_a_fork_from_a_deleted_checkpoint(cluster: Cluster, parent: str) -> None:
    """Deleted by hand after it was chosen: nothing is trained, and the run says what is missing."""
    child = cluster.api.fork_run(parent, {"step": 2})["id"]
    begin = checkpoint(cluster.api, parent, step=2)
    shutil.rmtree(begin["path"])
    assert cluster.run_next() == 2
    found = cluster.api.run(child)
    assert found["status"] == "failed"
    assert f"{begin['path']}, the checkpoint to begin at, is gone" in found["reason"]
    assert cluster.evaluations(child) == cluster.evaluations(parent)[:2], "only what it has of its parent's curve"
