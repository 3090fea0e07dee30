"""MLflow's own client reports to the whole service, over HTTP, in a process of its own; and what pages show of it."""

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
from tests.web.conftest import Login
from tests.web.reading import assert_clean, text_of

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
def logger(visitor: TestClient, headers: Headers) -> Logger:
    return Logger(visitor, headers)


def environment(url: str, logger: Logger) -> dict[str, str]:
    secret = logger.headers["operate"]["Authorization"].removeprefix("Bearer ")
    said = {"MLFLOW_TRACKING_URI": f"{url}/mlflow", "MLFLOW_TRACKING_TOKEN": secret}
    said["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "1"  # what fails is to fail at once
    return {**os.environ, **said, "MLFLOW_RUN_CONTEXT": json.dumps(TAGS)}


def test_a_training_that_logs_to_mlflow_is_a_run_with_its_curve(app: FastAPI, logger: Logger, tmp_path: Path) -> None:
    with served(app) as url:
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


def test_a_killed_training_goes_on_with_its_run(app: FastAPI, logger: Logger, tmp_path: Path) -> None:
    with served(app) as url:
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


def test_a_runs_page_has_its_parameters_and_says_what_its_curve_waits_for(logger: Logger, log_in: Login) -> None:
    run = logger.begin("verl")
    params = {"lr": "1e-6", "actor.optim.lr": "2e-6", "actor/clip": "<0.2>"}
    logger.post("runs/log-batch", run_id=run, params=[{"key": key, "value": params[key]} for key in params])
    logger.log(run, 1, val__acc=0.1, val__reward=0.2)
    html = log_in().get(f"/runs/{run}").text
    assert_clean(html)
    assert "several numbers could be its pass rate, and tag forecurve.metric names none" in text_of(html)
    assert "3 parameters lr 1e-6 actor optim/lr 2e-6 clip <0.2>" in text_of(html)


def test_mlflows_addresses_lead_to_the_runs(visitor: TestClient) -> None:
    for address in ("/mlflow", "/mlflow/"):
        assert visitor.get(address).headers["location"] == "/runs"


def test_errors_of_its_doors_are_no_pages(logger: Logger) -> None:
    answer = logger.get("experiments/get-by-name", experiment_name="none")
    assert (answer.status_code, answer.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")
