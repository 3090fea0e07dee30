"""A fault is told in the words of who sent it: what must be, not which type of Python it is not."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.server.reporting import Headers, faults

UNITS = "must be one of GPU-hours, CPU-hours, GPU-seconds, CPU-seconds, steps"


@pytest.mark.parametrize(
    ("path", "body", "field", "message"),
    [
        ("/v1/sweeps:plan", {"preset": "scalerl"}, "design", "is required"),
        ("/v1/sweeps:plan", {"preset": "scalerl", "design": []}, "design", "must be an object, as in {...}"),
        (
            "/v1/sweeps:plan",
            {"preset": "scalerl", "design": {"kind": "leave_one_out", "seeds": 2}},
            "design.seeds",
            "must be a list, as in [1, 2]",
        ),
        ("/v1/runs", {"executor": "extern"}, "executor", "must be one of ray, external"),
        ("/v1/runs", {"compute_unit": ""}, "compute_unit", UNITS),
        ("/v1/runs", {"budget_compute": "100"}, "budget_compute", "must be a number"),
        ("/v1/runs", {"budget_compute": -1}, "budget_compute", "must be above 0"),
        ("/v1/runs", {"budget_compute": 1e-31}, "budget_compute", "must be at least 1e-30"),
        ("/v1/runs", {"name": "x" * 201}, "name", "must have at most 200 characters"),
        ("/v1/runs", {"name": 7}, "name", "must be text"),
        ("/v1/runs", {"preset": "scalerl", "unit": "h"}, "unit", "unknown field; the schema is at /openapi.json"),
        ("/v1/tokens", {"name": "a", "scopes": "read"}, "scopes", "must be a list, as in [1, 2]"),
        ("/v1/tokens", {"name": "a", "scopes": ["read"], "expires_in_s": 0}, "expires_in_s", "must be at least 1"),
        (
            "/v1/tokens",
            {"name": "a", "scopes": ["read"], "expires_in_s": 1.5},
            "expires_in_s",
            "must be a whole number",
        ),
    ],
)
def test_of_a_body(path: str, body: Any, field: str, message: str, api: TestClient, headers: Headers) -> None:
    answer = api.post(path, json=body, headers=headers["admin"])
    assert (answer.status_code, faults(answer)[field]) == (422, message)


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        ("limit=x", "limit", "must be a whole number"),
        ("limit=0", "limit", "must be at least 1"),
        ("limit=1001", "limit", "must be at most 1000"),
        ("archived=maybe", "archived", "must be true or false"),
        ("name=a&name=b", "name", "is given 2 times, and is one value; give it once"),
        ("nmae=a", "nmae", "is no parameter of GET /v1/runs"),
    ],
)
def test_of_a_query(query: str, field: str, message: str, api: TestClient, headers: Headers) -> None:
    answer = api.get(f"/v1/runs?{query}", headers=headers["read"])
    assert answer.status_code == 422
    assert faults(answer)[field].startswith(message)


def test_a_parameter_that_is_a_list_may_be_given_several_times(api: TestClient, headers: Headers) -> None:
    assert api.get("/v1/runs?status=running&status=queued", headers=headers["read"]).status_code == 200


def test_a_scope_that_is_wanting_is_named_with_what_mints_it(api: TestClient, headers: Headers) -> None:
    answer = api.post("/v1/runs", json={"preset": "scalerl"}, headers=headers["read"])
    assert answer.status_code == 403
    assert answer.json()["detail"].startswith("This needs scope `operate`; the token")
    assert "`forecurve token create NAME --scope operate`" in answer.json()["detail"]
