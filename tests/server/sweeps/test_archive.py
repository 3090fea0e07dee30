"""A sweep that is over is put away with its runs, and taken out again with those that went with it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from server.errors import Conflict
from server.runs.lifecycle import transition
from server.runs.models import Run
from server.runs.service import lock_run
from server.runs.states import Status
from server.sweeps.archive import archive_sweep
from tests.at_once import at_once
from tests.conftest import Clock
from tests.server.reporting import Headers, move

Sessions = sessionmaker[Session]
SWEEP = {"preset": "scalerl", "design": {"kind": "leave_one_out", "ingredients": ["cispo", "pipeline"]}}


@pytest.fixture
def sweep(api: TestClient, headers: Headers) -> dict[str, Any]:
    made: dict[str, Any] = api.post("/v1/sweeps", json=SWEEP, headers=headers["operate"]).json()
    return made


def end(sessions: Sessions, sweep: dict[str, Any], clock: Clock) -> None:
    for run in sweep["runs"]:
        move(sessions, run["id"], Status.FAILED, clock.now)


def asked(api: TestClient, headers: Headers, sweep: dict[str, Any], what: str, body: Any = None) -> Any:
    return api.post(f"/v1/sweeps/{sweep['id']}{what}", json=body, headers=headers["operate"])


def listed(api: TestClient, headers: Headers, path: str) -> list[str]:
    return [item["id"] for item in api.get(f"/v1/{path}", headers=headers["read"]).json()["items"]]


def test_a_sweep_leaves_the_lists_with_its_runs_and_comes_back_with_them(
    api: TestClient, headers: Headers, sweep: dict[str, Any], sessions: Sessions, clock: Clock
) -> None:
    end(sessions, sweep, clock)
    before, *others = (run["id"] for run in sweep["runs"])
    api.post(f"/v1/runs/{before}:archive", headers=headers["operate"])
    clock.advance(5)
    for _ in range(2):  # the second time changes nothing
        away = asked(api, headers, sweep, ":archive").json()
        assert away["archived_at"] is not None
    assert {run["archived_at"] for run in away["runs"][1:]} == {away["archived_at"]}
    assert away["runs"][0]["archived_at"] < away["archived_at"]
    assert listed(api, headers, "sweeps") == listed(api, headers, "runs") == []
    assert listed(api, headers, "sweeps?archived=true") == [sweep["id"]]
    for _ in range(2):
        assert asked(api, headers, sweep, ":restore").json()["archived_at"] is None
    assert listed(api, headers, "sweeps") == [sweep["id"]]
    assert sorted(listed(api, headers, "runs")) == sorted(others)  # that one was put away by itself
    kinds = [event["kind"] for event in api.get("/v1/events?since=0", headers=headers["read"]).json()["items"]]
    assert [kinds.count(f"sweep.{what}") for what in ("archived", "restored")] == [1, 1]
    assert [kinds.count(f"run.{what}") for what in ("archived", "restored")] == [3, 2]


def test_what_goes_on_is_not_put_away_and_what_is_put_away_is_not_extended(
    api: TestClient, headers: Headers, sweep: dict[str, Any], sessions: Sessions, clock: Clock
) -> None:
    refused = asked(api, headers, sweep, ":archive")
    assert (refused.status_code, "stop it" in refused.text) == (409, True)
    assert listed(api, headers, "sweeps") == [sweep["id"]]
    end(sessions, sweep, clock)
    asked(api, headers, sweep, ":archive")
    for what, body in (("/seeds", {"seeds": 1}), ("/arms", {"changes": {"optimizer.learning_rate": 1e-4}})):
        refused = asked(api, headers, sweep, what, body)
        assert (refused.status_code, "restore it first" in refused.text) == (409, True)
    assert asked(api, headers, {"id": "unknown"}, ":archive").status_code == 404


def test_a_sweep_may_be_put_away_while_its_last_runs_end(
    sweep: dict[str, Any], sessions: Sessions, clock: Clock
) -> None:
    """Both take runs and sweep in one order: neither waits for the other in a circle."""
    left = [run["id"] for run in sweep["runs"]]

    def end_or_archive() -> None:
        run_id = left.pop() if left else None
        with sessions.begin() as session:
            if run_id is not None:
                transition(session, lock_run(session, run_id), Status.FAILED, actor="t", reason=None, now=clock.now)
                return
            with suppress(Conflict):  # they are not all over yet
                archive_sweep(session, sweep["id"], actor="t", now=clock.now)

    at_once(2 * len(left), end_or_archive)
    with sessions() as session:
        away = {session.get_one(Run, run["id"]).archived_at for run in sweep["runs"]}
    assert len(away) == 1  # all of them, or none
