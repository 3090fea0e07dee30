"""Going on with a run that its user launched, at the API's door: the next attempt, and what is refused and why."""

from __future__ import annotations

from datetime import datetime

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.events.models import Event
from server.runs.states import Status
from tests.conftest import Clock
from tests.server.reporting import Headers, Reporter, bearer, evaluation, external_run, faults, move, queued_run

Sessions = sessionmaker[Session]


@pytest.fixture
def go_on(api: TestClient, headers: Headers):
    def post(run_id: str, scope: str = "operate", **body: object) -> Response:
        return api.post(f"/v1/runs/{run_id}/attempts", json=body, headers=headers[scope])

    return post


def test_the_next_attempt_reports_with_its_own_token_and_the_one_before_no_more(
    api: TestClient, headers: Headers, go_on
) -> None:
    first = external_run(api, headers)
    assert first.send(1, evaluation(10, 1.0, 0.3), evaluation(20, 2.0, 0.4)).status_code == 200

    begun = go_on(first.run_id)
    assert begun.status_code == 201, begun.text
    assert (begun.json()["attempt"], begun.json()["status"]) == (2, "running")
    second = Reporter(api, first.run_id, begun.json()["ingest_token"], 2)
    assert second.send(1, evaluation(20, 2.1, 0.45), evaluation(30, 3.0, 0.5)).status_code == 200

    late = first.send(2, evaluation(30, 3.0, 0.9))
    assert (late.status_code, late.json()["code"]) == (409, "superseded")
    assert first.beat().json()["stop"] is True
    curve = api.get(f"/v1/runs/{first.run_id}/curve", headers=headers["read"]).json()
    assert [(point["step"], point["attempt"]) for point in curve["points"]] == [(10, 1), (20, 2), (30, 2)]
    assert [(mark["step"], mark["attempt"]) for mark in curve["restarts"]] == [(20, 2)]
    handed_in = first.post("metrics", {"seq": 2, "points": [], "evaluations": [evaluation(15, 1.5)], "handed_in_by": 2})
    assert handed_in.status_code == 403, "it takes the newest attempt's token"
    assert go_on(first.run_id, "read").status_code == 403


def test_the_same_request_again_begins_no_second_attempt(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers)
    path, keyed = f"/v1/runs/{run.run_id}/attempts", headers["operate"] | {"Idempotency-Key": "once"}
    first, again = (api.post(path, json={}, headers=keyed).json() for _ in range(2))
    assert first == again
    assert api.get(f"/v1/runs/{run.run_id}", headers=headers["read"]).json()["attempt"] == 2


def test_a_run_that_was_lost_is_queued_until_its_next_attempt_reports(
    api: TestClient, headers: Headers, go_on, sessions: Sessions, clock: Clock
) -> None:
    run = external_run(api, headers)
    run.beat()
    run.post("outcome", {"outcome": "lost", "reason": "the machine was taken away"})
    move(sessions, run.run_id, Status.LOST, clock.now)

    begun = go_on(run.run_id).json()
    assert begun["status"] == "queued"
    Reporter(api, run.run_id, begun["ingest_token"], 2).beat()
    assert api.get(f"/v1/runs/{run.run_id}", headers=headers["read"]).json()["status"] == "running"
    with sessions() as session:
        resumed = session.scalars(select(Event).where(Event.kind == "run.resumed")).one()
        assert resumed.evidence == {"attempt": 2}


def test_what_is_over_or_not_the_users_own_does_not_go_on(
    api: TestClient, headers: Headers, go_on, sessions: Sessions, clock: Clock
) -> None:
    assert "no such run" in faults(go_on("run_unknown"))["run_id"]
    assert "`:resume`" in faults(go_on(queued_run(api, headers)))["executor"]

    stopping = external_run(api, headers)
    api.post(f"/v1/runs/{stopping.run_id}:stop", headers=headers["operate"])
    assert "is to stop" in faults(go_on(stopping.run_id))["desired_state"]

    ended = external_run(api, headers)
    ended.beat()
    ended.post("outcome", {"outcome": "succeeded"})
    told = go_on(ended.run_id)
    assert told.json()["code"] == "over", "by its own word, before the reconciler has seen it"
    assert "attempt 1" in faults(told)["status"]
    move(sessions, ended.run_id, Status.SUCCEEDED, clock.now)
    told = go_on(ended.run_id)
    assert told.json()["code"] == "over"
    assert "is succeeded and stays so; start a new run instead" in faults(told)["status"]


@pytest.mark.parametrize(
    ("field", "given", "has"),
    [
        ("compute_unit", "CPU-hours", "GPU-hours"),
        ("budget_compute", 20, "10"),
        ("preset", "dapo-qwen", "algorithm"),
        ("recipe", {"seed": 7}, "seed = 0"),
    ],
)
def test_what_is_given_must_be_what_the_run_has(
    api: TestClient, headers: Headers, go_on, field: str, given: object, has: str
) -> None:
    run = external_run(api, headers, preset="scalerl", compute_unit="GPU-hours", budget_compute=10)
    ((named, message),) = faults(go_on(run.run_id, **{field: given})).items()
    assert named.startswith(field)
    assert has in message
    assert "leave it out, or begin a new run" in message
    same = {"preset": "scalerl", "compute_unit": "GPU-hours", "budget_compute": 10}
    assert go_on(run.run_id, **same).status_code == 201


def test_an_attempt_that_had_ended_keeps_when(api: TestClient, headers: Headers, go_on, clock: Clock) -> None:
    run = external_run(api, headers)
    run.beat()
    run.post("outcome", {"outcome": "lost"})
    clock.advance(3600)
    assert go_on(run.run_id).status_code == 201
    clock.advance(60)
    assert go_on(run.run_id).status_code == 201
    newest, second, first = api.get(f"/v1/runs/{run.run_id}/attempts", headers=headers["read"]).json()["items"]
    assert newest["ended_at"] is None
    assert _seconds(first["ended_at"], second["ended_at"]) == 3660


def _seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


@pytest.mark.parametrize("budget", [True, "10"])
def test_a_budget_is_a_number(api: TestClient, headers: Headers, go_on, budget: object) -> None:
    run = external_run(api, headers, compute_unit="GPU-hours", budget_compute=10)
    assert "must be a number" in faults(go_on(run.run_id, budget_compute=budget))["budget_compute"]


def test_a_tracked_run_without_recipe_refuses_one(api: TestClient, headers: Headers, go_on) -> None:
    run = external_run(api, headers)
    assert "none" in faults(go_on(run.run_id, preset="scalerl"))["preset"]
    assert api.get("/v1/me", headers=bearer(run.token)).json()["kind"] == "ingest"
