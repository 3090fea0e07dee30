"""Metrics of several runs, to draw over one another."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.server.reporting import Headers, Reporter, external_run


@pytest.fixture
def runs(api: TestClient, headers: Headers) -> list[Reporter]:
    """One with two metrics, one with one of them and another, one with none."""
    first, second, third = (external_run(api, headers, name=name) for name in ("one", "two", "three"))
    first.send(1, points=[_point("loss", k, 1.0 + k) for k in range(6)] + [_point("kl", 0, "NaN")])
    second.send(1, points=[_point("loss", k, 2.0) for k in range(2)] + [_point("entropy", 0, 0.5)])
    return [first, second, third]


def _point(metric: str, step: int, value: Any) -> dict[str, Any]:
    return {"metric": metric, "step": step, "compute": float(step), "value": value}


def _ask(runs: list[Reporter], headers: Headers, **more: Any) -> Any:
    answer = runs[0].api.get(
        "/v1/runs:metrics", params={"run_id": [run.run_id for run in runs], **more}, headers=headers["read"]
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_names_are_those_that_any_of_them_has_logged(runs: list[Reporter], headers: Headers) -> None:
    assert _ask(runs, headers) == {"unit": "GPU-hours", "metrics": ["entropy", "kl", "loss"], "items": []}


def test_series_come_run_by_run_as_each_by_itself_has_them(runs: list[Reporter], headers: Headers) -> None:
    found = _ask(runs[::-1], headers, metric=["loss", "kl", "none"], buckets=3)
    told = [(item["run_id"], item["metric"], item["points"], item["not_finite"]) for item in found["items"]]
    first, second, _ = (run.run_id for run in runs)
    assert told == [(second, "loss", 2, 0), (first, "loss", 6, 0), (first, "kl", 1, 1)]
    path = f"/v1/runs/{first}/metrics:thinned"
    alone = runs[0].api.get(path, params={"metric": "loss", "buckets": 3}, headers=headers["read"]).json()["items"]
    assert [{"run_id": first, **alone[0]}] == [found["items"][1]]


def test_units_that_differ_are_none(api: TestClient, runs: list[Reporter], headers: Headers) -> None:
    other = external_run(api, headers, compute_unit="steps")
    assert _ask([*runs, other], headers)["unit"] is None


@pytest.mark.parametrize(("query", "status"), [({}, 422), ({"run_id": "run_none"}, 404)])
def test_runs_must_be_named_and_be_there(api: TestClient, headers: Headers, query: dict[str, str], status: int) -> None:
    assert api.get("/v1/runs:metrics", params=query, headers=headers["read"]).status_code == status
