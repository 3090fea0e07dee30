"""The service is stopped while it trains and started again: every evaluation is there, and no attempt was used up."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from forecurve.client import Api
from tests.forecurve.cli.services import UpProcess, processes_of, wait_until

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(600)]

RUN: dict[str, Any] = {
    "preset": "scalerl",
    "changes": {
        "budget.unit": "steps",
        "budget.compute": 150,  # more than a busy machine gets through while it is asked to stop
        "batch.prompts_per_step": 8,
        "batch.generations_per_prompt": 8,
        "evaluation.every_steps": 2,
        "evaluation.prompts": 32,
        "evaluation.samples": 2,
        "checkpoint.every_steps": 20,
    },
}


def started(data_dir: Path) -> tuple[UpProcess, str]:
    up = UpProcess(data_dir)
    url: str = up.wait_for("where")["url"]
    for part in ("ray", "worker", "scheduler"):
        up.wait_for("ready", part=part)
    return up, url


def test_a_run_survives_restarts_of_the_service_without_a_gap_in_its_curve(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    up, url = started(data_dir)
    token = up.wait_for("where")["admin_token"]
    with Api(url, token) as api:
        run_id = api.create_run(RUN)["id"]
        wait_until(lambda: (api.run(run_id)["last_step"] or 0) >= 6, 180)
    assert up.stop(signal.SIGTERM, 120) == 0
    assert processes_of(data_dir) == []
    said = json.loads((data_dir / "runs" / run_id / "outcome.json").read_text())
    assert said["outcome"] == "stopped"

    up, url = started(data_dir)
    try:
        with Api(url, token) as api:
            over = wait_until(lambda: run if (run := api.run(run_id))["finished_at"] else None, 240)
            attempts = sorted(api.items(f"/v1/runs/{run_id}/attempts"), key=lambda each: each["number"])
            steps = [point["step"] for point in api.curve(run_id)["points"]]
    finally:
        up.stop(signal.SIGTERM, 120)
    assert (over["status"], over["attempt"]) == ("succeeded", 2)
    assert [attempt["outcome"] for attempt in attempts] == ["stopped", "succeeded"]
    assert set(range(0, 151, 2)) <= set(steps)
