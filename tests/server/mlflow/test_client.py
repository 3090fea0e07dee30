"""MLflow's own client reports to the service, over HTTP, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.forecurve.serving import served
from tests.server.mlflow.logging import Logger
from tests.server.reporting import Headers

pytest.importorskip("mlflow", reason="MLflow's client is not installed here")

TAGS = {"forecurve.metric": "val/acc", "forecurve.per_step": "0.5", "forecurve.unit": "GPU-hours"}

TRAINS = """
import os, sys, mlflow
mlflow.set_experiment("gsm8k")
with mlflow.start_run(run_name="grpo") as run:
    mlflow.log_params({"lr": 1e-6, "actor.clip": 0.2})
    for step in range(0, 41, 10):
        mlflow.log_metrics({"actor/loss": 1 / (step + 1), "val/acc": step / 100, "val/score": 0.5}, step=step)
    mlflow.log_metric("done", float("nan"), step=40)
    mlflow.set_tag("who", "me")
    mlflow.log_dict({"a": 1}, "kept.json")
print(run.info.run_id)
"""

STANDS = """
import sys, time, mlflow
with mlflow.start_run(run_id=sys.argv[1] if len(sys.argv) > 1 else None) as run:
    for step in map(int, sys.argv[2:] or (0, 10, 20)):
        mlflow.log_metrics({"val/acc": (step + len(sys.argv)) / 100}, step=step)
    print(run.info.run_id, flush=True)
    if len(sys.argv) == 1:
        time.sleep(600)
"""


@pytest.fixture
def logger(api: TestClient, headers: Headers) -> Logger:
    return Logger(api, headers)


def environment(url: str, logger: Logger) -> dict[str, str]:
    secret = logger.headers["operate"]["Authorization"].removeprefix("Bearer ")
    said = {"MLFLOW_TRACKING_URI": f"{url}/mlflow", "MLFLOW_TRACKING_TOKEN": secret}
    return {**os.environ, **said, "MLFLOW_RUN_CONTEXT": json.dumps(TAGS)}


def test_a_training_that_logs_to_mlflow_is_a_run_with_its_curve(
    application: FastAPI, logger: Logger, tmp_path: Path
) -> None:
    with served(application) as url:
        done = subprocess.run(
            [sys.executable, "-c", TRAINS],
            env=environment(url, logger),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    run_id = done.stdout.split()[-1]
    run = logger.run(run_id)
    assert (run["name"], run["compute_unit"], run["attempt"]) == ("gsm8k/grpo", "GPU-hours", 1)
    assert logger.curve(run_id) == [(step, step / 2, step / 100) for step in range(0, 41, 10)]
    names = logger.api.get(f"/v1/runs/{run_id}/metrics", headers=logger.headers["read"]).json()["metrics"]
    assert names == ["actor/loss", "done", "val/acc", "val/score"]
    told = logger.get("runs/get", run_id=run_id).json()["run"]
    assert {one["key"]: one["value"] for one in told["data"]["params"]} == {"lr": "1e-06", "actor.clip": "0.2"}
    assert {"key": "who", "value": "me"} in told["data"]["tags"]
    [attempt] = logger.api.get(f"/v1/runs/{run_id}/attempts", headers=logger.headers["read"]).json()["items"]
    assert attempt["outcome"] == "succeeded"
    [kept] = tmp_path.rglob("kept.json")  # artifacts stay where the process runs
    assert kept.is_relative_to(tmp_path / "mlruns")


def test_a_killed_training_goes_on_with_its_run(application: FastAPI, logger: Logger, tmp_path: Path) -> None:
    with served(application) as url:
        where = {"env": environment(url, logger), "cwd": tmp_path, "text": True}
        with subprocess.Popen([sys.executable, "-c", STANDS], stdout=subprocess.PIPE, **where) as first:
            assert first.stdout is not None
            run_id = first.stdout.readline().strip()
            first.send_signal(signal.SIGKILL)
        assert logger.curve(run_id) == [(0, 0.0, 0.01), (10, 5.0, 0.11), (20, 10.0, 0.21)]
        again = [sys.executable, "-c", STANDS, run_id, "10", "20"]
        subprocess.run(again, check=True, capture_output=True, timeout=120, **where)
    assert logger.run(run_id)["attempt"] == 2
    assert logger.curve(run_id) == [(0, 0.0, 0.01), (10, 5.0, 0.14), (20, 10.0, 0.24)]
