"""Heartbeats and outcomes: what a trainer says of its attempt, and what it is told."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.events.models import Event, OutboxMessage
from server.runs.models import Attempt, Run
from server.runs.states import Status
from tests.conftest import Clock
from tests.server.reporting import Headers, Reporter, evaluation, external_run, faults, launch, move, queued_run

Sessions = sessionmaker[Session]


@pytest.fixture
def attempt(api: TestClient, headers: Headers, sessions: Sessions, clock: Clock) -> Reporter:
    """The first attempt of a run, just launched."""
    return launch(api, sessions, queued_run(api, headers), clock.now)


def status(sessions: Sessions, run_id: str) -> str:
    with sessions() as session:
        return session.get_one(Run, run_id).status


def test_the_first_heartbeat_makes_a_launched_run_run(
    sessions: Sessions, attempt: Reporter, clock: Clock, api: TestClient
) -> None:
    assert status(sessions, attempt.run_id) == "launching"
    clock.advance(3)
    answer = attempt.beat(step=4, compute=1.5, message="step 4")
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert (said["stop"], said["reason"]) == (False, None)
    assert said["interval_s"] == api.app.state.settings.heartbeat_interval_s  # type: ignore[attr-defined]
    with sessions() as session:
        run = session.get_one(Run, attempt.run_id)
        assert (run.status, run.started_at) == ("running", clock.now)
        row = session.scalars(select(Attempt)).one()
        assert (row.started_at, row.last_heartbeat_at) == (clock.now, clock.now)
        assert row.progress == {"step": 4, "compute": 1.5, "message": "step 4"}
    clock.advance(5)
    attempt.beat(step=9)
    with sessions() as session:
        row = session.scalars(select(Attempt)).one()
        assert row.last_heartbeat_at == clock.now
        assert row.started_at != clock.now
        assert row.progress == {"step": 9, "compute": 1.5, "message": "step 4"}


@pytest.mark.parametrize("said", [{"step": True}, {"step": "4"}, {"compute": False}, {"attempt": True}])
def test_what_is_no_number_is_not_taken_for_one(said: dict[str, object], attempt: Reporter) -> None:
    answer = attempt.beat(**said)
    assert answer.status_code == 422, answer.text
    assert list(faults(answer)) == list(said)


def test_a_suspect_run_that_reports_again_runs(sessions: Sessions, attempt: Reporter, clock: Clock) -> None:
    attempt.beat()
    move(sessions, attempt.run_id, Status.SUSPECT, clock.now)
    attempt.send(1, points=[{"metric": "loss", "step": 1, "value": 1.0}])
    assert status(sessions, attempt.run_id) == "running"
    move(sessions, attempt.run_id, Status.SUSPECT, clock.now)
    attempt.beat()
    assert status(sessions, attempt.run_id) == "running"


def test_who_asked_to_stop_is_told_why(api: TestClient, headers: Headers, attempt: Reporter) -> None:
    attempt.beat()
    api.post(f"/v1/runs/{attempt.run_id}:stop", json={"reason": "no gain left."}, headers=headers["operate"])
    assert attempt.beat().json()["stop"] is True
    assert attempt.beat().json()["reason"] == "The run is to stop: no gain left."
    api.post(f"/v1/runs/{attempt.run_id}:cancel", headers=headers["operate"])
    assert attempt.beat().json()["reason"] == "The run is to cancel."
    assert attempt.send(1, evaluation(10)).status_code == 200, "its last evaluation is still wanted"


def test_a_superseded_attempt_and_a_run_that_is_over_are_told_to_stop(
    api: TestClient, sessions: Sessions, attempt: Reporter, clock: Clock
) -> None:
    attempt.beat()
    move(sessions, attempt.run_id, Status.LOST, clock.now)
    assert "given up" in attempt.beat().json()["reason"]
    assert status(sessions, attempt.run_id) == "lost", "a heartbeat does not revive it"
    move(sessions, attempt.run_id, Status.QUEUED, clock.now)
    second = launch(api, sessions, attempt.run_id, clock.now)
    told = attempt.beat().json()
    assert (told["stop"], "superseded by attempt 2" in told["reason"]) == (True, True)
    assert status(sessions, attempt.run_id) == "launching"
    assert second.beat().json()["stop"] is False
    move(sessions, attempt.run_id, Status.FAILED, clock.now, "disk full")
    told = second.beat().json()
    assert (told["stop"], told["reason"]) == (True, "The run is over: failed (disk full).")


def test_an_outcome_is_kept_and_the_reconciler_is_called(sessions: Sessions, attempt: Reporter, clock: Clock) -> None:
    attempt.beat()
    sent = {"outcome": "failed", "reason": "loss is NaN", "exit_code": 1}
    answer = attempt.post("outcome", sent)
    assert answer.status_code == 200, answer.text
    assert answer.json()["outcome_reason"] == "loss is NaN"
    assert attempt.post("outcome", sent).json() == answer.json()
    with sessions() as session:
        assert session.get_one(Run, attempt.run_id).status == "running", "only the reconciler ends a run"
        row = session.scalars(select(Attempt)).one()
        assert (row.outcome, row.exit_code, row.ended_at) == ("failed", 1, clock.now)
        tasks = session.scalars(select(OutboxMessage).where(OutboxMessage.task == "worker.tasks.reconcile_run")).all()
        assert [task.args for task in tasks] == [[attempt.run_id]]
        (event,) = session.scalars(select(Event).where(Event.kind == "attempt.outcome"))
        assert (event.to_state, event.reason, event.evidence["attempt"]) == ("failed", "loss is NaN", 1)


def test_an_outcome_does_not_change(attempt: Reporter) -> None:
    attempt.beat()
    attempt.post("outcome", {"outcome": "succeeded"})
    answer = attempt.post("outcome", {"outcome": "failed"})
    assert answer.status_code == 409
    assert "does not change" in faults(answer)["outcome"]


def test_an_outcome_after_the_end_is_refused_unless_it_was_said_before(
    sessions: Sessions, attempt: Reporter, clock: Clock, api: TestClient, headers: Headers
) -> None:
    attempt.beat()
    attempt.post("outcome", {"outcome": "stopped"})
    move(sessions, attempt.run_id, Status.STOPPED, clock.now)
    assert attempt.post("outcome", {"outcome": "stopped"}).status_code == 200
    silent = external_run(api, headers)
    move(sessions, silent.run_id, Status.FAILED, clock.now)
    late = silent.post("outcome", {"outcome": "succeeded"})
    assert (late.status_code, late.json()["code"]) == (409, "over")
    with sessions() as session:
        assert session.get_one(Run, silent.run_id).status == "failed"


def test_bad_reports_name_their_field(attempt: Reporter, api: TestClient, headers: Headers) -> None:
    assert "outcome" in faults(attempt.post("outcome", {"outcome": "done"}))
    assert "compute" in faults(attempt.beat(compute=-1))
    assert "stepp" in faults(attempt.beat(stepp=1))
    assert (
        attempt.api.post(f"/v1/runs/{attempt.run_id}/heartbeat", json={}, headers=headers["operate"]).status_code == 422
    )
    missing = attempt.api.post("/v1/runs/run_nowhere/heartbeat", json={"attempt": 1}, headers=headers["operate"])
    assert missing.status_code == 404
