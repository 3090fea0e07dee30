"""The API stands, and answers what nobody asked for in the same shape as everything else."""

from __future__ import annotations

from fastapi.testclient import TestClient


def test_an_unknown_path_is_a_problem_with_a_request_id(api: TestClient, headers: dict[str, dict[str, str]]) -> None:
    answer = api.get("/v1/no-such-thing", headers=headers["read"])
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["request_id"]
