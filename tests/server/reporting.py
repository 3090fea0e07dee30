"""What the tests of reports share: a trainer's end of the wire, and the launch that a worker would do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy.orm import Session, sessionmaker

from server.access.service import mint
from server.runs.lifecycle import transition
from server.runs.models import Attempt
from server.runs.service import lock_run
from server.runs.states import Status

Headers = dict[str, dict[str, str]]


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@dataclass
class Reporter:
    """One attempt of one run, reporting with its own ingest token."""

    api: TestClient
    run_id: str
    token: str
    attempt: int = 1

    def post(self, what: str, body: dict[str, Any]) -> Response:
        body = {"attempt": self.attempt, **body}
        return self.api.post(f"/v1/runs/{self.run_id}/{what}", json=body, headers=bearer(self.token))

    def send(self, seq: int, *evaluations: dict[str, Any], points: list[dict[str, Any]] | None = None) -> Response:
        return self.post("metrics", {"seq": seq, "points": points or [], "evaluations": list(evaluations)})

    def beat(self, **said: Any) -> Response:
        return self.post("heartbeat", said)


def evaluation(step: int, compute: float | None = None, reward: float = 0.5, **more: Any) -> dict[str, Any]:
    return {"step": step, "compute": float(step) if compute is None else compute, "reward": reward, **more}


def external_run(api: TestClient, headers: Headers, **body: Any) -> Reporter:
    """A run that reports by itself."""
    body = {"executor": "external", "compute_unit": "GPU-hours", **body}
    answer = api.post("/v1/runs", json=body, headers=headers["operate"])
    assert answer.status_code == 201, answer.text
    return Reporter(api, answer.json()["id"], answer.json()["ingest_token"])


def queued_run(api: TestClient, headers: Headers, **body: Any) -> str:
    """A run that waits for the cluster."""
    answer = api.post("/v1/runs", json={"preset": "scalerl", **body}, headers=headers["operate"])
    assert answer.status_code == 201, answer.text
    assert answer.json()["ingest_token"] is None
    run_id: str = answer.json()["id"]
    return run_id


def launch(api: TestClient, sessions: sessionmaker[Session], run_id: str, now: datetime) -> Reporter:
    """What admission and launch do: the next attempt, its token, status launching."""
    with sessions.begin() as session:
        run = lock_run(session, run_id)
        run.attempt += 1
        session.add(Attempt(run_id=run.id, number=run.attempt))
        session.flush()
        transition(session, run, Status.LAUNCHING, actor="test", reason=None, now=now)
        _, secret = mint(
            session, kind="ingest", name="ingest", scopes=["ingest"], now=now, run_id=run.id, attempt=run.attempt
        )
        return Reporter(api, run_id, secret, run.attempt)


def move(sessions: sessionmaker[Session], run_id: str, to: Status, now: datetime, reason: str | None = None) -> None:
    """What the reconciler does."""
    with sessions.begin() as session:
        transition(session, lock_run(session, run_id), to, actor="reconciler", reason=reason, now=now)


def faults(answer: Response) -> dict[str, str]:
    """Field to message of a problem; fails when the answer is none."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["detail"]
    return {fault["field"]: fault["message"] for fault in body["errors"]}
