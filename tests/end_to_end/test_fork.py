"""A fork from the API's door to its last step: the service, the worker and real trainer processes; only Ray is played.

What the worker submits is run as Ray would run it: its line of shell, with its environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy.orm import Session, sessionmaker

from forecurve.client import Api
from server.access.service import mint
from tests.forecurve.serving import served
from tests.trainer.conftest import SMALL
from tests.worker.harness import World, ray, world

__all__ = ["ray", "world"]

ROOT = Path(__file__).parents[2]
STEPS = {"budget.compute": 6, "checkpoint.every_steps": 2, "checkpoint.keep_last": 3}
CHANGES = {"optimizer.learning_rate": 1e-3, "budget.compute": 8}


@dataclass
class Cluster:
    """The API over HTTP, and the worker with a cluster that really runs what it is given, one job at a time."""

    api: Api
    world: World

    def run_next(self) -> subprocess.CompletedProcess[str]:
        """Admit and submit whoever is next, run the job to its end, and let the reconciler see it."""
        self.world.now = datetime.now(UTC)
        (attempt_id,) = self.world.admit()
        self.world.launch(attempt_id)
        reference = self.world.ray.submissions[-1]
        job = self.world.ray.jobs[reference]
        environment = os.environ | {"PYTHONPATH": str(ROOT)} | job["runtime_env"]["env_vars"]
        done = subprocess.run(
            job["entrypoint"], shell=True, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120
        )
        self.world.ray.set(reference, "FAILED" if done.returncode else "SUCCEEDED", driver_exit_code=done.returncode)
        self.world.now = datetime.now(UTC)
        self.world.reconcile()
        return done

    def evaluations(self, run_id: str) -> list[tuple[int, float, float]]:
        """Step, compute and pass rate, as the service has them."""
        items = self.api.get(f"/v1/runs/{run_id}/evaluations")["items"]
        return [(item["step"], item["compute"], item["reward"]) for item in items]


@pytest.fixture
def cluster(application: FastAPI, sessions: sessionmaker[Session], world: World) -> Iterator[Cluster]:
    application.dependency_overrides = {}
    with sessions.begin() as session:
        _, secret = mint(session, kind="api", name="test", scopes=["operate"], now=datetime.now(UTC))
    with served(application) as url, Api(url, secret) as api:
        world.settings.public_url = url
        world.settings.trainer_command = f"{sys.executable} -m trainer --no-ray"
        yield Cluster(api, world)


def test_a_fork_goes_on_from_its_parents_checkpoint_and_fails_by_name_when_that_is_gone(
    cluster: Cluster, tmp_path: Path
) -> None:
    parent = cluster.api.create_run({"preset": "scalerl", "changes": SMALL | STEPS})["id"]
    assert cluster.run_next().returncode == 0
    assert cluster.api.run(parent)["status"] == "succeeded"
    child = _check_a_fork(cluster, parent)
    origin = json.loads((tmp_path / "runs" / child / "origin.json").read_text())
    begin = _checkpoint(cluster.api, parent, step=4)
    assert (origin["parent"], origin["checkpoint_digest"]) == (begin["path"], begin["digest"])
    assert set(origin["changes"]) == set(CHANGES)
    _check_a_fork_from_a_deleted_checkpoint(cluster, parent)


def _check_a_fork(cluster: Cluster, parent: str) -> str:
    """It goes on by step, compute and weights, and writes checkpoints of its own."""
    child = cluster.api.fork_run(parent, {"step": 4, "changes": CHANGES})
    assert (child["status"], child["parent"]["step"]) == ("queued", 4)
    assert cluster.run_next().returncode == 0
    found = cluster.api.run(child["id"])
    assert (found["status"], found["last_step"], found["last_compute"]) == ("succeeded", 8, 8.0)
    theirs, ours = cluster.evaluations(parent), cluster.evaluations(child["id"])
    assert [(step, compute) for step, compute, _ in ours] == [(4, 4.0), (6, 6.0), (8, 8.0)]
    assert ours[0] == theirs[2], "the same weights, judged on the same prompts"
    assert [fork["id"] for fork in cluster.api.forks(parent)] == [child["id"]]
    own = _checkpoint(cluster.api, child["id"], step=8)
    assert Path(own["path"]).parents[1].name == child["id"]
    return str(child["id"])


def _check_a_fork_from_a_deleted_checkpoint(cluster: Cluster, parent: str) -> None:
    """Deleted by hand after it was chosen: nothing is trained, and the run says what is missing."""
    child = cluster.api.fork_run(parent, {"step": 2})["id"]
    begin = _checkpoint(cluster.api, parent, step=2)
    shutil.rmtree(begin["path"])
    assert cluster.run_next().returncode == 2
    found = cluster.api.run(child)
    assert found["status"] == "failed"
    assert f"{begin['path']}, the checkpoint to begin at, is gone" in found["reason"]
    assert cluster.evaluations(child) == cluster.evaluations(parent)[:2], "only what it has of its parent's curve"


def _checkpoint(api: Api, run_id: str, *, step: int) -> dict[str, Any]:
    (found,) = (item for item in api.items(f"/v1/runs/{run_id}/checkpoints") if item["step"] == step)
    return found
