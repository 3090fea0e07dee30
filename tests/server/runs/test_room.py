"""What the cluster can never have room for is refused where it is asked for, with what it has."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.server.reporting import Headers

LARGE = {"preset": "scalerl", "changes": {"resources.cpus": 4}}
SWEEP = {"name": "large", "preset": "scalerl", "changes": {"resources.gpus": 8}, "design": {"kind": "leave_one_out"}}


@pytest.fixture
def small(api: TestClient) -> TestClient:
    settings = api.app.state.settings  # type: ignore[attr-defined]
    settings.cluster_cpus, settings.cluster_gpus = 2.5, 4.0
    return api


def fault(answer: Any) -> tuple[int, str, Any, str]:
    (error,) = answer.json()["errors"]
    return answer.status_code, error["field"], error["value"], error["message"]


def test_a_run_and_a_sweep_that_would_never_begin_are_refused(small: TestClient, headers: Headers) -> None:
    run = small.post("/v1/runs", json=LARGE, headers=headers["operate"])
    way_out = "ask for less, or correct FORECURVE_CLUSTER_CPUS of the service"
    assert fault(run) == (422, "resources.cpus", 4.0, f"the cluster has 2.5 for runs; {way_out}")
    for path, scope in (("/v1/sweeps:plan", "read"), ("/v1/sweeps", "operate")):
        status, field, value, message = fault(small.post(path, json=SWEEP, headers=headers[scope]))
        assert (status, field, value) == (422, "resources.gpus", 8.0)
        assert message.startswith("the cluster has 4 for runs; ask for less")
    assert small.get("/v1/runs", headers=headers["read"]).json()["items"] == []


def test_what_fits_and_what_is_launched_elsewhere_is_taken(small: TestClient, headers: Headers) -> None:
    fits = {"preset": "scalerl", "changes": {"resources.cpus": 2.5, "resources.gpus": 4}}
    for body in (fits, LARGE | {"executor": "external"}):
        assert small.post("/v1/runs", json=body, headers=headers["operate"]).status_code == 201
