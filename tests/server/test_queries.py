"""What stands behind the `?`: nothing of it is ignored, so that no list is taken for a shorter one."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from tests.server.reporting import Headers, external_run, faults

LISTS = ["runs", "sweeps", "recipes", "alerts", "deliveries", "recommendations", "channels", "tokens"]
OF_A_RUN = ["events", "forecasts", "checkpoints", "attempts", "forks"]


@pytest.mark.parametrize("name", [*LISTS, *(f"runs/{{run}}/{name}" for name in OF_A_RUN)])
@pytest.mark.parametrize("cursor", ["zzz", "abc_01m7zpb70r3a6cywy9rs4g1tgd", "-1", ""])
def test_a_cursor_of_no_page_is_refused(name: str, cursor: str, api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers)
    answer = api.get(f"/v1/{name.format(run=run.run_id)}?cursor={cursor}", headers=headers["admin"])
    assert answer.status_code == 422
    assert "next_cursor" in faults(answer)["cursor"]


def test_a_parameter_that_nothing_reads_is_refused(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers)
    lists = api.get("/v1/runs?bogus=1&limit=2", headers=headers["read"])
    assert lists.status_code == 422
    assert list(faults(lists)) == ["bogus"]
    assert all(f"`{name}`" in faults(lists)["bogus"] for name in ("status", "sweep_id", "arm", "cursor", "limit"))
    assert "takes none" in faults(api.get(f"/v1/runs/{run.run_id}?verbose=1", headers=headers["read"]))["verbose"]
    assert api.post(f"/v1/runs/{run.run_id}:stop?reason=x", headers=headers["operate"]).status_code == 422
    assert api.get("/v1/stream?sinse=3", headers=headers["read"]).status_code == 422
    assert api.get("/healthz?probe=1").status_code == 200


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("runs?sweep_id=nothing", "sweep_id"),
        ("track-record?sweep_id=nothing", "sweep_id"),
        ("recommendations?run_id=nothing", "run_id"),
        ("alerts?run_id=nothing", "run_id"),
        ("deliveries?alert_id=nothing", "alert_id"),
        ("events?run_id=nothing", "run_id"),
        ("events?sweep_id=nothing", "sweep_id"),
        ("forecasts/nothing", "forecast_id"),
        ("recommendations/nothing", "recommendation_id"),
        ("alerts/nothing", "alert_id"),
        ("deliveries/nothing", "delivery_id"),
    ],
)
def test_what_does_not_exist_is_404_by_its_field(path: str, field: str, api: TestClient, headers: Headers) -> None:
    answer = api.get(f"/v1/{path}", headers=headers["read"])
    assert answer.status_code == 404
    assert "no such" in faults(answer)[field]


def test_what_cannot_be_answered_or_removed_is_404_by_its_field(api: TestClient, headers: Headers) -> None:
    answers = {
        "alert_id": api.post("/v1/alerts/nothing:acknowledge", headers=headers["operate"]),
        "recommendation_id": api.post("/v1/recommendations/nothing:accept", headers=headers["operate"]),
        "channel_id": api.delete("/v1/channels/nothing", headers=headers["admin"]),
    }
    assert "no such" in faults(api.post("/v1/channels/nothing:test", headers=headers["admin"]))["channel_id"]
    assert {field: answer.status_code for field, answer in answers.items()} == dict.fromkeys(answers, 404)
    assert all(field in faults(answer) for field, answer in answers.items())


def test_a_report_with_another_runs_token_is_refused_by_field(api: TestClient, headers: Headers) -> None:
    run, other = external_run(api, headers), external_run(api, headers)
    run.token = other.token
    assert "own ingest token" in faults(run.beat())["run_id"]
    other.attempt = 2
    assert "attempt 1" in faults(other.beat())["attempt"]
