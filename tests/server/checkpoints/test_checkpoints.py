"""Checkpoints: reported once, read back, refused when they are no longer wanted."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.events.models import Event
from server.runs.states import Status
from tests.conftest import Clock
from tests.server.reporting import Headers, external_run, faults, move

CHECKPOINT: dict[str, Any] = {
    "step": 50,
    "compute": 10.2,
    "path": "/runs/1/step_50",
    "digest": "a" * 64,
    "size_bytes": 5_000_000_000,
}


def test_a_checkpoint_is_kept_once_and_listed(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session]
) -> None:
    run = external_run(api, headers)
    first = run.post("checkpoints", CHECKPOINT)
    assert first.status_code == 201, first.text
    assert run.post("checkpoints", CHECKPOINT).json() == first.json()
    run.post("checkpoints", {**CHECKPOINT, "step": 100})
    listed = api.get(f"/v1/runs/{run.run_id}/checkpoints", headers=headers["read"]).json()["items"]
    assert sorted(item["step"] for item in listed) == [50, 100]
    assert listed[0]["size_bytes"] == 5_000_000_000
    assert [item["on_disk"] for item in listed] == [None, None], "its user keeps them"
    with sessions() as session:
        events = session.scalars(select(Event).where(Event.kind == "checkpoint").order_by(Event.id)).all()
        assert [event.evidence["step"] for event in events] == [50, 100]


def test_another_checkpoint_at_the_same_step_is_refused(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers)
    run.post("checkpoints", CHECKPOINT)
    answer = run.post("checkpoints", {**CHECKPOINT, "digest": "b" * 64})
    assert answer.status_code == 409
    assert "another checkpoint at step 50" in faults(answer)["digest"]


def test_a_checkpoint_of_a_run_that_is_over_is_refused(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session], clock: Clock
) -> None:
    run = external_run(api, headers)
    move(sessions, run.run_id, Status.STOPPED, clock.now)
    assert run.post("checkpoints", CHECKPOINT).json()["code"] == "over"


def test_a_bad_checkpoint_names_its_field(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers)
    for field, value in (("digest", "abc"), ("size_bytes", -1), ("path", ""), ("step", -1), ("compute", -0.5)):
        assert field in faults(run.post("checkpoints", {**CHECKPOINT, field: value}))
