"""Pausing and resuming at the API's door: what is taken, what is refused and why."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.checkpoints.models import Checkpoint
from server.events.models import Event, OutboxMessage
from server.runs.lifecycle import INGEST_GRACE
from server.runs.models import Run
from server.runs.states import Status
from tests.conftest import Clock
from tests.server.reporting import Headers, Reporter, evaluation, external_run, faults, launch, move, queued_run

Sessions = sessionmaker[Session]


@pytest.fixture
def attempt(api: TestClient, headers: Headers, sessions: Sessions, clock: Clock) -> Reporter:
    """The first attempt of a run, which runs."""
    reporter = launch(api, sessions, queued_run(api, headers), clock.now)
    reporter.beat()
    return reporter


@pytest.fixture
def ask(api: TestClient, headers: Headers):
    def post(run_id: str, verb: str, **body: str) -> Response:
        return api.post(f"/v1/runs/{run_id}:{verb}", json=body, headers=headers["operate"])

    return post


def test_a_running_run_is_told_to_pause_with_the_reason(ask, attempt: Reporter, sessions: Sessions) -> None:
    answer = ask(attempt.run_id, "pause", reason="the cluster is needed")
    assert answer.status_code == 200, answer.text
    assert (answer.json()["desired_state"], answer.json()["status"]) == ("pause", "running")
    told = attempt.beat().json()
    assert (told["stop"], told["reason"]) == (True, "The run is to pause: the cluster is needed.")
    assert attempt.send(1, evaluation(10)).status_code == 200, "its last evaluation is still wanted"
    assert ask(attempt.run_id, "pause").json()["version"] == answer.json()["version"], "said twice, it is once"
    with sessions() as session:
        (said,) = session.scalars(select(Event).where(Event.kind == "run.desired"))
        assert (said.from_state, said.to_state, said.reason) == ("run", "pause", "the cluster is needed")
        assert said.actor.startswith("tok_")
        rung = session.scalars(select(OutboxMessage).where(OutboxMessage.task == "worker.tasks.reconcile_run")).all()
        assert [message.args for message in rung] == [[attempt.run_id]]


def test_a_queued_run_is_paused_and_resumed_at_once(ask, api: TestClient, headers: Headers, sessions: Sessions) -> None:
    run_id = queued_run(api, headers)
    paused = ask(run_id, "pause").json()
    assert (paused["status"], paused["desired_state"], paused["finished_at"]) == ("paused", "pause", None)
    expected = "Paused as asked while it was queued. It has no checkpoint of its own: resumed, it begins at step 0."
    assert paused["reason"] == expected
    resumed = ask(run_id, "resume").json()
    assert (resumed["status"], resumed["desired_state"], resumed["reason"]) == ("queued", "run", "Resumed.")
    with sessions() as session:
        events = session.scalars(select(Event).where(Event.run_id == run_id).order_by(Event.id))
        moves = [(event.kind, event.from_state, event.to_state) for event in events if event.to_state]
        assert moves == [
            ("run.desired", "run", "pause"),
            ("run.status", "queued", "paused"),
            ("run.desired", "pause", "run"),
            ("run.status", "paused", "queued"),
        ]
        tasks = session.scalars(select(OutboxMessage.task).order_by(OutboxMessage.id)).all()
        assert tasks[-1] == "worker.tasks.admit"


def test_a_run_that_waits_for_its_next_try_is_resumed_without_that_wait(
    ask, attempt: Reporter, sessions: Sessions, clock: Clock
) -> None:
    move(sessions, attempt.run_id, Status.LOST, clock.now)
    move(sessions, attempt.run_id, Status.QUEUED, clock.now)
    with sessions.begin() as session:
        session.get_one(Run, attempt.run_id).not_before = clock.now
        session.add(Checkpoint(run_id=attempt.run_id, attempt=1, step=20, path="/c", digest="a" * 64, size_bytes=1))
    assert ask(attempt.run_id, "pause").json()["reason"].endswith("it goes on from its checkpoint of step 20.")
    ask(attempt.run_id, "resume")
    with sessions() as session:
        assert session.get_one(Run, attempt.run_id).not_before is None


def test_a_paused_attempts_token_no_longer_works(ask, attempt: Reporter, sessions: Sessions, clock: Clock) -> None:
    ask(attempt.run_id, "pause")
    move(sessions, attempt.run_id, Status.PAUSED, clock.now)
    refused = attempt.send(1, evaluation(10))
    assert (refused.status_code, refused.json()["code"], refused.json()["state"]) == (409, "superseded", "paused")
    assert attempt.beat().json()["stop"] is True
    clock.advance(INGEST_GRACE.total_seconds())
    assert attempt.beat().status_code == 401


def test_who_resumes_too_early_is_told_to_wait(ask, attempt: Reporter, sessions: Sessions, clock: Clock) -> None:
    ask(attempt.run_id, "pause")
    for status in (None, Status.PAUSING):
        if status:
            move(sessions, attempt.run_id, status, clock.now)
        refused = ask(attempt.run_id, "resume")
        assert refused.status_code == 409
        assert "resume it when its status is paused" in faults(refused)["status"]


def test_what_is_not_paused_cannot_be_resumed(ask, attempt: Reporter) -> None:
    refused = ask(attempt.run_id, "resume")
    assert (refused.status_code, refused.json()["state"]) == (409, "running")
    assert "only a paused run can be resumed" in faults(refused)["status"]


def test_a_run_of_ones_own_is_paused_where_it_runs(ask, api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers)
    refused = ask(run.run_id, "pause")
    assert refused.status_code == 409
    assert "pause it where it runs" in faults(refused)["executor"]
    assert run.beat().json()["stop"] is False


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_run_that_is_over_or_to_end_is_neither_paused_nor_resumed(
    verb: str, ask, attempt: Reporter, api: TestClient, headers: Headers, sessions: Sessions, clock: Clock
) -> None:
    ask(attempt.run_id, "stop")
    refused = ask(attempt.run_id, verb)
    assert refused.status_code == 409
    assert "is to stop, and that stands" in faults(refused)["desired_state"]
    move(sessions, attempt.run_id, Status.FAILED, clock.now, "out of memory")
    refused = ask(attempt.run_id, verb)
    assert (refused.status_code, refused.json()["code"]) == (409, "over")
    assert "out of memory" in faults(refused)["status"]
    assert api.post(f"/v1/runs/run_nowhere:{verb}", headers=headers["operate"]).status_code == 404


@pytest.mark.parametrize("verb", ["stop", "cancel"])
def test_a_paused_run_can_be_told_to_end(verb: str, ask, api: TestClient, headers: Headers) -> None:
    run_id = queued_run(api, headers)
    ask(run_id, "pause")
    assert ask(run_id, verb).json()["desired_state"] == verb
    assert "is to" in faults(ask(run_id, "resume"))["desired_state"]
