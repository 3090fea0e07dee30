"""The service, the worker and real trainer processes; only Ray is played.

What the worker submits is run as Ray would run it: its line of shell, with its environment.
"""

from __future__ import annotations

import os
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
from tests.worker.harness import World

ROOT = Path(__file__).parents[2]


@dataclass
class Job:
    """A trainer at work."""

    reference: str
    process: subprocess.Popen[str]


@dataclass
class Cluster:
    """The API over HTTP, and the worker with a cluster that really runs what it is given, one job at a time."""

    api: Api
    world: World

    def run_next(self) -> int:
        """Admit and submit whoever is next, and run the job to its end; its exit code."""
        return self.end(self.start_next())

    def start_next(self) -> Job:
        """Admit and submit whoever is next, and start the job."""
        self.world.now = datetime.now(UTC)
        (attempt_id,) = self.world.admit()
        self.world.launch(attempt_id)
        reference = self.world.ray.submissions[-1]
        job = self.world.ray.jobs[reference]
        self.world.ray.set(reference, "RUNNING")
        environment = os.environ | {"PYTHONPATH": str(ROOT)} | job["runtime_env"]["env_vars"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return Job(reference, subprocess.Popen(job["entrypoint"], shell=True, env=environment, cwd=ROOT, **quiet))

    def end(self, job: Job) -> int:
        """Wait for the end of the job, and let the reconciler see it; its exit code."""
        code = job.process.wait(120)
        self.world.ray.set(job.reference, "FAILED" if code else "SUCCEEDED", driver_exit_code=code)
        self.reconcile()
        return code

    def reconcile(self) -> None:
        self.world.now = datetime.now(UTC)
        self.world.reconcile()

    def evaluations(self, run_id: str) -> list[tuple[int, float, float]]:
        """Step, compute and pass rate, as the service has them."""
        items = self.api.get(f"/v1/runs/{run_id}/evaluations")["items"]
        return [(item["step"], item["compute"], item["reward"]) for item in items]


def checkpoint(api: Api, run_id: str, *, step: int) -> dict[str, Any]:
    """The one of that step."""
    (found,) = (item for item in api.items(f"/v1/runs/{run_id}/checkpoints") if item["step"] == step)
    return found


@pytest.fixture
def cluster(
    application: FastAPI, sessions: sessionmaker[Session], world: World, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    application.dependency_overrides = {}
    monkeypatch.setattr(application.state.settings, "heartbeat_interval_s", 0.1)
    with sessions.begin() as session:
        _, secret = mint(session, kind="api", name="test", scopes=["operate"], now=datetime.now(UTC))
    with served(application) as url, Api(url, secret) as api:
        world.settings.public_url = url
        world.settings.trainer_command = f"{sys.executable} -m trainer --no-ray"
        yield Cluster(api, world)
