"""The service is away while an attempt ends: the next attempt hands in what that one could not send."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from forecurve.client import Api, Run, attach
from server.runs.states import Status
from tests.conftest import Clock
from tests.forecurve.serving import served
from tests.server.reporting import Headers, launch, move, queued_run

from .conftest import kill

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def url(application: FastAPI, api: TestClient) -> Iterator[str]:
    """The API over HTTP, on the same database and clock as `api`."""
    with served(application) as found:
        yield found


@pytest.fixture
def begin(
    api: TestClient,
    sessions: sessionmaker[Session],
    headers: Headers,
    clock: Clock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """Launches the next attempt of one run and attaches to it, by way of the service at a URL."""
    run_id = queued_run(api, headers)

    def next_attempt(url: str) -> Run:
        if (tmp_path / "spool").exists():
            move(sessions, run_id, Status.LOST, clock.now)
            move(sessions, run_id, Status.QUEUED, clock.now)
        launched = launch(api, sessions, run_id, clock.now)
        named = {"URL": url, "RUN": run_id, "ATTEMPT": str(launched.attempt), "TOKEN": launched.token}
        for name, value in named.items():
            monkeypatch.setenv(f"FORECURVE_{name}", value)
        return attach(tmp_path)

    return next_attempt


def train(run: Run, *steps: int, checkpoint: int | None = None) -> None:
    for step in steps:
        run.log({"train/reward": 0.5}, step=step, compute=float(step))
        run.log_evaluation(step=step, compute=float(step), reward=0.5)
    if checkpoint is not None:
        run.log_checkpoint(step=checkpoint, compute=float(checkpoint), path="/c", digest="a" * 64, size_bytes=1)


def shown(url: str, headers: Headers, run: Run) -> dict[str, Any]:
    with Api(url, headers["read"]["Authorization"].removeprefix("Bearer ")) as api:
        return api.curve(str(run.id)) | {
            "train/reward": api.get(f"/v1/runs/{run.id}/metrics", metric="train/reward")["points"],
            "outcomes": [each["outcome"] for each in api.items(f"/v1/runs/{run.id}/attempts")],
        }


def test_the_next_attempt_hands_in_what_two_before_it_could_not_send(url: str, begin: Any, headers: Headers) -> None:
    first = begin(url)
    train(first, 0, 10)
    first.flush()
    kill(first)
    second = begin(NOWHERE)
    train(second, 10, 20, checkpoint=20)
    second.finish("stopped", "SIGTERM received", deadline_s=0.2)
    third = begin(NOWHERE)
    train(third, 30, checkpoint=30)
    kill(third)

    fourth = begin(url)
    train(fourth, 40)
    fourth.finish()

    assert fourth.unsent == 0
    found = shown(url, headers, fourth)
    assert [(point["step"], point["attempt"]) for point in found["points"]] == [
        (0, 1),
        (10, 2),
        (20, 2),
        (30, 3),
        (40, 4),
    ]
    assert [point["step"] for point in found["train/reward"]] == [0, 10, 20, 30, 40]
    assert [(mark["step"], mark["attempt"]) for mark in found["restarts"]] == [(10, 2), (20, 3), (30, 4)]
    assert found["outcomes"] == ["succeeded", None, "stopped", None]


def test_what_was_handed_in_is_not_sent_again(url: str, begin: Any, tmp_path: Path) -> None:
    first = begin(NOWHERE)
    train(first, 0, 10)
    first.finish("stopped", deadline_s=0.2)
    second = begin(url)
    second.flush()
    kill(second)

    third = begin(url)

    assert third.unsent == 0
    assert not list(tmp_path.rglob("rejected.jsonl"))
    third.finish()


def test_what_the_service_does_not_take_waits_for_the_attempt_after(url: str, begin: Any, headers: Headers) -> None:
    first = begin(NOWHERE)
    train(first, 0, 10)
    first.finish("stopped", deadline_s=0.2)
    second = begin(NOWHERE)
    second.finish("stopped", deadline_s=0.4)
    assert second.unsent > 1

    third = begin(url)
    third.finish()

    assert [point["step"] for point in shown(url, headers, third)["points"]] == [0, 10]
