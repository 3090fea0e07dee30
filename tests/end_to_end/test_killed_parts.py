"""Parts of the service are killed while runs report: each evaluation counts once, and is forecast in the end."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.forecurve.cli.services import UpProcess, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RUNS, BATCHES = 6, 80
FALLS_FROM = 60  # of every third run: an alert is to come of it, once


class Reporter(threading.Thread):
    """A run that sends one evaluation after another, each again and again until it is answered."""

    def __init__(self, url: str, run: dict[str, Any], number: int) -> None:
        super().__init__(daemon=True)
        self.run_id, self.falls, self.again = run["id"], number % 3 == 0, 0
        headers = {"Authorization": f"Bearer {run['ingest_token']}"}
        self._api = httpx.Client(base_url=url, headers=headers, timeout=10, trust_env=False)

    def run(self) -> None:
        for seq in range(1, BATCHES + 1):
            while not self._sent(seq):
                self.again += 1
                time.sleep(0.2)
            time.sleep(0.3)

    def _sent(self, seq: int) -> bool:
        rate = 0.2 + 0.6 / (1 + (20 / seq) ** 1.6) - (0.02 * max(seq - FALLS_FROM, 0) if self.falls else 0.0)
        reward = round(rate * 1024) / 1024
        evaluation = {"step": seq, "compute": float(seq), "reward": reward, "prompts": 256, "samples": 4}
        point = {"metric": "loss", "step": seq, "value": 1.0}
        body = {"attempt": 1, "seq": seq, "evaluations": [evaluation], "points": [point]}
        try:
            answer = self._api.post(f"/v1/runs/{self.run_id}/metrics", json=body)
        except httpx.HTTPError:
            return False
        assert answer.status_code in (200, 503), answer.text
        return answer.status_code == 200


def kill(up: UpProcess, part: str) -> None:
    """kill -9 for the part as it runs now, and for its children."""
    now = json.loads((up.data_dir / "state.json").read_text())["parts"][part]
    if now["state"] != "running":
        return
    if part == "postgres":  # its children tidy up shared memory when they see it gone
        os.kill(now["pid"], signal.SIGKILL)
        return
    process = psutil.Process(now["pid"])
    for each in [*process.children(recursive=True), process]:
        each.kill()


def test_nothing_is_lost_doubled_or_left_behind_when_parts_are_killed(tmp_path: Path) -> None:
    up = UpProcess(tmp_path / "data", "--without-ray")
    where = up.wait_for("where")
    for part in ("worker", "scheduler"):
        up.wait_for("ready", part=part)
    headers = {"Authorization": f"Bearer {where['admin_token']}"}
    try:
        with httpx.Client(base_url=where["url"], headers=headers, timeout=30, trust_env=False) as api:
            body = {"executor": "external", "compute_unit": "GPU-hours", "budget_compute": 100.0}
            runs = [api.post("/v1/runs", json=body).json() for _ in range(RUNS)]
            reporters = [Reporter(where["url"], run, number) for number, run in enumerate(runs)]
            for reporter in reporters:
                reporter.start()
            for part in ("worker", "redis", "api", "postgres", "worker", "redis"):
                time.sleep(4)
                kill(up, part)
            for reporter in reporters:
                reporter.join(240)
                assert not reporter.is_alive()
            assert sum(reporter.again for reporter in reporters) > 0, "nothing was killed"
            wait_until(lambda: all(_is_forecast(api, reporter.run_id) for reporter in reporters), 180)
            for reporter in reporters:
                _holds(api, reporter)
    finally:
        up.stop(signal.SIGTERM, 120)


def _is_forecast(api: httpx.Client, run_id: str) -> bool:
    made = api.get(f"/v1/runs/{run_id}/forecasts", params={"limit": 1}).json()["items"]
    return bool(made) and made[0]["at_step"] == BATCHES


def _holds(api: httpx.Client, reporter: Reporter) -> None:
    path = f"/v1/runs/{reporter.run_id}"
    steps = list(range(1, BATCHES + 1))
    assert [each["step"] for each in api.get(f"{path}/evaluations").json()["items"]] == steps
    points = api.get(f"{path}/metrics", params={"metric": "loss"}).json()["points"]
    assert [point["step"] for point in points] == steps
    alerts = api.get("/v1/alerts", params={"run_id": reporter.run_id}).json()["items"]
    assert [alert["kind"] for alert in alerts] == (["below_forecast"] if reporter.falls else [])
    assert api.get(path).json()["status"] in ("running", "suspect")
