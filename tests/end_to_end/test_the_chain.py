"""The main job at a smaller size, on real parts: one command up, a sweep in, forecasts and pages out, nothing left."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from forecurve.cli.supervisor.files import tail
from forecurve.client import Api
from tests.forecurve.cli.services import UpProcess, processes_of, wait_until

pytestmark = [pytest.mark.ray, pytest.mark.timeout(420)]

SWEEP: dict[str, Any] = {
    "name": "end to end",
    "preset": "scalerl",
    "changes": {
        "budget.compute": 4.0,
        "batch.prompts_per_step": 8,
        "batch.generations_per_prompt": 8,
        "evaluation.every_steps": 4,
        "evaluation.prompts": 64,
        "evaluation.samples": 2,
        "checkpoint.every_steps": 8,
    },
    "design": {"kind": "leave_one_out", "ingredients": ["batch-scale"]},
}
OVER = ("succeeded", "stopped", "failed")


@pytest.fixture
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    service = UpProcess(tmp_path_factory.mktemp("e2e") / "data")
    yield service
    if service.process.poll() is None:
        service.stop(signal.SIGTERM, 90)


def test_a_sweep_is_trained_forecast_and_shown_and_nothing_is_left_running(up: UpProcess) -> None:
    where = up.wait_for("where")
    for part in ("ray", "worker", "scheduler"):
        up.wait_for("ready", part=part)
    with Api(where["url"], where["admin_token"]) as api:
        planned = api.plan_sweep(SWEEP)
        sweep = api.create_sweep(SWEEP | {"plan_hash": planned["plan_hash"]})
        # Not oftener: a look costs the API a twentieth of a second.
        runs = wait_until(lambda: _all_over(api, sweep["id"]), 240, every=0.5)
        assert {run["arm"]: run["status"] for run in runs} == {"control": "succeeded", "no-batch-scale": "succeeded"}

        runs = wait_until(lambda: _all_forecast(api, sweep["id"]), 30, every=0.5)
        for run in runs:
            _check_run(api, up.data_dir, run)
        compared = wait_until(lambda: api.sweep(sweep["id"])["comparison"], 60, every=0.5)
        assert [arm["arm"] for arm in compared["arms"]] == ["no-batch-scale"]
    _check_pages(where, sweep["id"], [run["id"] for run in runs], up.data_dir / "logs" / "api.log")

    assert up.stop(signal.SIGTERM, 90) == 0
    assert processes_of(up.data_dir) == []


def _all_over(api: Api, sweep_id: str) -> list[dict[str, Any]] | None:
    runs: list[dict[str, Any]] = api.sweep(sweep_id)["runs"]
    return runs if all(run["status"] in OVER for run in runs) else None


def _all_forecast(api: Api, sweep_id: str) -> list[dict[str, Any]] | None:
    runs: list[dict[str, Any]] = api.sweep(sweep_id)["runs"]
    return runs if all(run["ceiling"] for run in runs) else None


def _check_run(api: Api, data_dir: Path, run: dict[str, Any]) -> None:
    """Points from step 0 to the budget, a forecast with its band over them, checkpoints that lie on disk."""
    curve = api.curve(run["id"])
    points, forecast = curve["points"], curve["forecast"]
    assert points[0]["step"] == 0
    assert points[-1]["compute"] >= run["budget_compute"]
    assert [point["compute"] for point in points] == sorted(point["compute"] for point in points)
    assert all(0 <= point["reward"] <= 1 and point["se"] is not None for point in points)
    band = forecast["band"]
    assert all(
        low <= middle <= high
        for low, middle, high in zip(band["lower90"], band["median"], band["upper90"], strict=True)
    )
    assert band["compute"][-1] >= points[-1]["compute"]
    assert forecast["A"]["lower"] <= forecast["A"]["median"] <= forecast["A"]["upper"]
    assert curve["checkpoints"]
    assert list((data_dir / "runs" / run["id"]).rglob("step_*"))
    names = api.get(f"/v1/runs/{run['id']}/metrics")["metrics"]
    assert "train/reward" in names
    attempts = list(api.items(f"/v1/runs/{run['id']}/attempts"))
    assert [(attempt["number"], attempt["outcome"]) for attempt in attempts] == [(1, "succeeded")]


def _check_pages(where: dict[str, Any], sweep_id: str, run_ids: list[str], log: Path) -> None:
    with httpx.Client(base_url=where["url"], follow_redirects=True, timeout=30, trust_env=False) as browser:
        login = browser.get(where["login_url"])
        assert login.status_code == 200, tail(log, 40)
        for path in ("/", f"/sweeps/{sweep_id}", *(f"/runs/{run_id}" for run_id in run_ids)):
            page = browser.get(path)
            assert page.status_code == 200, tail(log, 40)
            assert all(run_id in page.text for run_id in run_ids if path == "/" or run_id in path)
