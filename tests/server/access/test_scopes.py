"""Every door asks for the scope that the contract names, and no door is forgotten."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.server.reporting import Headers, bearer, external_run

READ, OPERATE, ADMIN, INGEST, ANY, OPEN = "read", "operate", "admin", "ingest", "any", "open"

DOORS = {
    "GET /healthz": OPEN,
    "GET /readyz": OPEN,
    "GET /v1/me": ANY,
    "POST /v1/recipes": OPERATE,
    "GET /v1/recipes": READ,
    "GET /v1/recipes:presets": READ,
    "GET /v1/recipes:schema": READ,
    "GET /v1/recipes/{recipe_id}": READ,
    "POST /v1/sweeps:plan": READ,
    "POST /v1/sweeps": OPERATE,
    "GET /v1/sweeps": READ,
    "GET /v1/sweeps/{sweep_id}": READ,
    "PATCH /v1/sweeps/{sweep_id}": OPERATE,
    "POST /v1/sweeps/{sweep_id}:archive": OPERATE,
    "POST /v1/sweeps/{sweep_id}:restore": OPERATE,
    "POST /v1/sweeps/{sweep_id}/seeds": OPERATE,
    "POST /v1/sweeps/{sweep_id}/arms": OPERATE,
    "POST /v1/sweeps/{sweep_id}:stop": OPERATE,
    "GET /v1/sweeps/{sweep_id}/curves": READ,
    "POST /v1/runs": OPERATE,
    "POST /v1/runs:import": OPERATE,
    "GET /v1/runs": READ,
    "GET /v1/runs:count": READ,
    "GET /v1/runs:compare": READ,
    "GET /v1/runs:curves": READ,
    "GET /v1/runs:metrics": READ,
    "GET /v1/runs/{run_id}": READ,
    "PATCH /v1/runs/{run_id}": OPERATE,
    "POST /v1/runs/{run_id}:archive": OPERATE,
    "POST /v1/runs/{run_id}:restore": OPERATE,
    "GET /v1/runs/{run_id}/recipe": "read or ingest",
    "POST /v1/runs/{run_id}:stop": OPERATE,
    "POST /v1/runs/{run_id}:cancel": OPERATE,
    "POST /v1/runs/{run_id}:pause": OPERATE,
    "POST /v1/runs/{run_id}:resume": OPERATE,
    "POST /v1/runs/{run_id}/forks": OPERATE,
    "GET /v1/runs/{run_id}/forks": READ,
    "POST /v1/runs/{run_id}/metrics": INGEST,
    "POST /v1/runs/{run_id}/heartbeat": INGEST,
    "POST /v1/runs/{run_id}/checkpoints": INGEST,
    "POST /v1/runs/{run_id}/outcome": INGEST,
    "GET /v1/runs/{run_id}/metrics": READ,
    "GET /v1/runs/{run_id}/metrics:thinned": READ,
    "GET /v1/runs/{run_id}/metrics:forecast": READ,
    "GET /v1/runs/{run_id}/evaluations": READ,
    "GET /v1/runs/{run_id}/curve": READ,
    "GET /v1/runs/{run_id}/forecasts": READ,
    "GET /v1/runs/{run_id}/checkpoints": READ,
    "GET /v1/runs/{run_id}/attempts": READ,
    "POST /v1/runs/{run_id}/attempts": OPERATE,
    "GET /v1/runs/{run_id}/logs": READ,
    "GET /v1/runs/{run_id}/events": READ,
    "GET /v1/forecasts/{forecast_id}": READ,
    "GET /v1/track-record": READ,
    "GET /v1/recommendations": READ,
    "GET /v1/recommendations/{recommendation_id}": READ,
    "POST /v1/recommendations/{recommendation_id}:accept": OPERATE,
    "POST /v1/recommendations/{recommendation_id}:dismiss": OPERATE,
    "GET /v1/alerts": READ,
    "GET /v1/alerts/{alert_id}": READ,
    "POST /v1/alerts/{alert_id}:acknowledge": OPERATE,
    "POST /v1/alerts/{alert_id}:resolve": OPERATE,
    "POST /v1/channels": ADMIN,
    "GET /v1/channels": ADMIN,
    "DELETE /v1/channels/{channel_id}": ADMIN,
    "POST /v1/channels/{channel_id}:test": ADMIN,
    "GET /v1/deliveries": READ,
    "GET /v1/deliveries/{delivery_id}": READ,
    "GET /v1/events": READ,
    "GET /v1/stream": READ,
    "POST /v1/tokens": ADMIN,
    "GET /v1/tokens": ADMIN,
    "DELETE /v1/tokens/{token_id}": ADMIN,
}

MAY = {
    READ: {READ, OPERATE, ADMIN},
    OPERATE: {OPERATE, ADMIN},
    ADMIN: {ADMIN},
    INGEST: {INGEST},
    "read or ingest": {READ, OPERATE, ADMIN, INGEST},
    ANY: {READ, OPERATE, ADMIN, INGEST},
}

QUERIES = {
    "GET /v1/runs:compare": {"run_id": "unknown"},
    "GET /v1/runs:curves": {"run_id": "unknown"},
    "GET /v1/runs:metrics": {"run_id": "unknown"},
    "GET /v1/runs/{run_id}/metrics:forecast": {"metric": "unknown"},
}

BODIES = {
    "POST /v1/recipes": {"preset": "scalerl"},
    "POST /v1/sweeps": {"preset": "scalerl", "design": {"kind": "leave_one_out"}},
    "POST /v1/sweeps:plan": {"preset": "scalerl", "design": {"kind": "leave_one_out"}},
    "POST /v1/runs": {"preset": "scalerl"},
    "POST /v1/runs:import": {
        "name": "old",
        "compute_unit": "GPU-hours",
        "evaluations": [{"step": 1, "compute": 1.0, "reward": 0.5}],
    },
    "PATCH /v1/runs/{run_id}": {"name": "x"},
    "PATCH /v1/sweeps/{sweep_id}": {"name": "x"},
    "POST /v1/sweeps/{sweep_id}/seeds": {"seeds": 1},
    "POST /v1/sweeps/{sweep_id}/arms": {"changes": {"optimizer.learning_rate": 1e-4}},
    "POST /v1/runs/{run_id}/metrics": {"attempt": 1, "seq": 1},
    "POST /v1/runs/{run_id}/heartbeat": {"attempt": 1},
    "POST /v1/runs/{run_id}/outcome": {"attempt": 1, "outcome": "succeeded"},
    "POST /v1/runs/{run_id}/checkpoints": {"attempt": 1, "step": 1, "path": "/x", "digest": "0" * 64, "size_bytes": 1},
    "POST /v1/tokens": {"name": "x", "scopes": ["read"]},
    "POST /v1/channels": {"name": "x", "kind": "webhook", "url": "https://example.com/hook"},
    "POST /v1/recommendations/{recommendation_id}:accept": {"reason": "x"},
    "POST /v1/recommendations/{recommendation_id}:dismiss": {"reason": "x"},
}


def test_the_table_has_every_door_there_is(application: FastAPI) -> None:
    paths = application.openapi()["paths"]
    there_are = {f"{method.upper()} {path}" for path, operations in paths.items() for method in operations}
    assert there_are == set(DOORS)


@pytest.mark.parametrize("door", [door for door, scope in DOORS.items() if scope != OPEN and door != "GET /v1/stream"])
def test_a_door_opens_to_its_scope_and_to_no_other(door: str, api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers, preset="scalerl")
    callers = {**headers, "ingest": bearer(run.token), "nobody": {}}
    method, path = door.split(" ")
    path = re.sub(r"\{(\w+)\}", lambda name: run.run_id if name[1] == "run_id" else "unknown", path)
    for name, header in callers.items():
        answer = api.request(method, path, json=BODIES.get(door), params=QUERIES.get(door), headers=header)
        expected = name in MAY[DOORS[door]]
        if name == "nobody":
            assert answer.status_code == 401, (name, answer.text)
        elif expected:
            assert answer.status_code not in (401, 403, 422, 500), (name, answer.text)
        else:
            assert answer.status_code == 403, (name, answer.text)


def test_the_stream_is_not_for_everyone(api: TestClient, headers: Headers) -> None:
    assert api.get("/v1/stream").status_code == 401
    run = external_run(api, headers)
    assert api.get("/v1/stream", headers=bearer(run.token)).status_code == 403
