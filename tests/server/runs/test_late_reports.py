"""What an attempt could not send is handed in by the next: as the earlier one's, and by nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from server.runs.models import Run
from server.runs.states import Status
from tests.conftest import Clock
from tests.server.reporting import Headers, Reporter, evaluation, faults, launch, move, queued_run

Two = tuple[Reporter, Reporter]


@pytest.fixture
def attempts(api: TestClient, sessions: sessionmaker[Session], headers: Headers, clock: Clock) -> Two:
    """The first attempt, which was lost after step 10, and the second, which runs."""
    run_id = queued_run(api, headers)
    first = launch(api, sessions, run_id, clock.now)
    first.send(1, evaluation(0), evaluation(10))
    move(sessions, run_id, Status.LOST, clock.now)
    move(sessions, run_id, Status.QUEUED, clock.now)
    second = launch(api, sessions, run_id, clock.now)
    second.beat()
    return first, second


def batch(seq: int, *evaluations: dict[str, Any], by: int = 2, attempt: int = 1) -> dict[str, Any]:
    return {"attempt": attempt, "handed_in_by": by, "seq": seq, "points": [], "evaluations": list(evaluations)}


def checkpoint(step: int) -> dict[str, Any]:
    return {"step": step, "compute": float(step), "path": f"/s{step}", "digest": "a" * 64, "size_bytes": 1}


def curve(run: Reporter, headers: Headers) -> dict[str, Any]:
    found: dict[str, Any] = run.api.get(f"/v1/runs/{run.run_id}/curve", headers=headers["read"]).json()
    return found


def test_what_is_handed_in_stands_where_it_would_have_stood_in_time(attempts: Two, headers: Headers) -> None:
    _, second = attempts
    assert second.post("metrics", batch(2, evaluation(20), evaluation(30))).status_code == 200
    handed = {"attempt": 1, "handed_in_by": 2}
    for step in (20, 25):
        assert second.post("checkpoints", checkpoint(step) | handed).status_code == 201
    second.send(1, evaluation(30, 33.0))
    shown = curve(second, headers)
    assert [(point["step"], point["attempt"]) for point in shown["points"]] == [(0, 1), (10, 1), (20, 1), (30, 2)]
    assert shown["restarts"] == [{"attempt": 2, "step": 25, "compute": 25.0}]


def test_it_may_come_after_the_new_attempts_own(
    attempts: Two, headers: Headers, sessions: sessionmaker[Session]
) -> None:
    _, second = attempts
    second.send(1, evaluation(30, 33.0))
    second.post("metrics", batch(2, evaluation(20), evaluation(30)))
    assert [point["step"] for point in curve(second, headers)["points"]] == [0, 10, 20, 30]
    with sessions() as session:
        run = session.get_one(Run, second.run_id)
        assert (run.last_step, run.last_compute) == (30, 33.0)


def test_a_batch_that_had_been_taken_after_all_counts_once(attempts: Two) -> None:
    _, second = attempts
    again = second.post("metrics", batch(1, evaluation(0), evaluation(10)))
    assert again.json() == {"seq": 1, "accepted": 0, "duplicate": True}


def test_the_outcome_of_an_earlier_attempt_is_kept_and_ends_nothing(attempts: Two, headers: Headers) -> None:
    _, second = attempts
    said = {"attempt": 1, "handed_in_by": 2, "outcome": "succeeded", "reason": "budget reached"}
    assert second.post("outcome", said).json()["outcome"] == "succeeded"
    attempts_of = second.api.get(f"/v1/runs/{second.run_id}/attempts", headers=headers["read"]).json()["items"]
    assert [(each["number"], each["outcome"]) for each in attempts_of] == [(2, None), (1, "succeeded")]
    assert second.api.get(f"/v1/runs/{second.run_id}", headers=headers["read"]).json()["status"] == "running"


def test_the_earlier_attempt_itself_stays_refused(attempts: Two) -> None:
    first, _ = attempts
    assert faults(first.send(2, evaluation(20)))["attempt"].startswith("attempt 1 of run")
    answer = first.post("metrics", batch(2, evaluation(20)))
    assert answer.status_code == 403
    assert "is for attempt 1" in answer.json()["detail"]


def test_an_attempt_that_was_given_up_hands_nothing_in(
    attempts: Two, sessions: sessionmaker[Session], clock: Clock
) -> None:
    _, second = attempts
    move(sessions, second.run_id, Status.LOST, clock.now)
    answer = second.post("metrics", batch(2, evaluation(20)))
    assert (answer.status_code, answer.json()["code"]) == (409, "superseded")
    assert "handed_in_by" in faults(answer)


@pytest.mark.parametrize(("attempt", "by", "status"), [(2, 2, 422), (1, 3, 403)])
def test_only_the_current_attempt_hands_in_and_only_what_is_earlier(
    attempts: Two, attempt: int, by: int, status: int
) -> None:
    _, second = attempts
    answer = second.post("metrics", batch(2, evaluation(20), attempt=attempt, by=by))
    assert answer.status_code == status
    if status == 422:
        assert faults(answer)["handed_in_by"].startswith("must be a later attempt than `attempt`, 2")
