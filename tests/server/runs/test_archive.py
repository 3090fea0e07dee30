"""Runs get another name, are put away when they are over, and are taken out again."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.service import open_alert
from server.forecasts.track_record import told
from server.runs.models import Run
from server.runs.states import Status
from tests.conftest import Clock
from tests.server.forecasts.seeds import START, learned, make_forecast, make_run, make_sweep
from tests.server.forecasts.test_track_record import finished
from tests.server.reporting import Headers, external_run, faults, move

Sessions = sessionmaker[Session]


@pytest.fixture
def over(api: TestClient, headers: Headers, sessions: Sessions, clock: Clock) -> str:
    """A failed run with an open alert."""
    run_id = external_run(api, headers, name="a try").run_id
    move(sessions, run_id, Status.FAILED, clock.now)
    with sessions.begin() as session:
        run = session.get_one(Run, run_id)
        open_alert(session, run, kind="run_failed", level="ALERT", title="t", text="x", now=START)
    return run_id


def listed(api: TestClient, headers: Headers, path: str) -> list[str]:
    """The runs, or whose alerts, are in a list."""
    items = api.get(f"/v1/{path}", headers=headers["read"]).json()["items"]
    return [item.get("run_id", item["id"]) for item in items]


def history(api: TestClient, headers: Headers, run_id: str) -> list[tuple[Any, ...]]:
    items = api.get(f"/v1/runs/{run_id}/events", headers=headers["read"]).json()["items"]
    return [(item["kind"], item["from_state"], item["to_state"]) for item in items]


def test_a_run_gets_another_name_and_its_history_says_so(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers, name="tset").run_id
    answer = api.patch(f"/v1/runs/{run}", json={"name": "  test "}, headers=headers["operate"])
    assert (answer.status_code, answer.json()["name"]) == (200, "test")
    api.patch(f"/v1/runs/{run}", json={"name": "test"}, headers=headers["operate"])
    assert history(api, headers, run) == [("run.renamed", "tset", "test"), ("run.created", None, None)]


@pytest.mark.parametrize("body", [{"name": "  "}, {"name": "x" * 201}, {}, {"name": "x", "status": "queued"}])
def test_a_name_that_is_none_is_refused(body: dict[str, Any], api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers, name="kept").run_id
    answer = api.patch(f"/v1/runs/{run}", json=body, headers=headers["operate"])
    assert answer.status_code == 422
    assert faults(answer)
    assert api.get(f"/v1/runs/{run}", headers=headers["read"]).json()["name"] == "kept"


def test_an_archived_run_is_out_of_lists_inbox_and_counts_until_restored(
    api: TestClient, headers: Headers, over: str
) -> None:
    other = external_run(api, headers).run_id
    for _ in range(2):  # the second time changes nothing
        answer = api.post(f"/v1/runs/{over}:archive", headers=headers["operate"])
        assert answer.json()["archived_at"] is not None
    assert listed(api, headers, "runs") == [other]
    assert listed(api, headers, "runs?archived=true") == [over]
    assert listed(api, headers, "alerts") == listed(api, headers, "alerts?open=true") == []
    assert listed(api, headers, f"alerts?run_id={over}") == [over]
    assert api.get(f"/v1/runs/{over}", headers=headers["read"]).json()["open_alerts"] == 0
    for _ in range(2):
        assert api.post(f"/v1/runs/{over}:restore", headers=headers["operate"]).json()["archived_at"] is None
    assert listed(api, headers, "runs") == [other, over]
    assert listed(api, headers, "alerts") == [over]
    kinds = [kind for kind, *_ in history(api, headers, over)]
    assert (kinds[:2], kinds.count("run.archived")) == (["run.restored", "run.archived"], 1)


def test_a_run_that_is_not_over_is_not_archived(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers).run_id
    answer = api.post(f"/v1/runs/{run}:archive", headers=headers["operate"])
    assert answer.status_code == 409
    assert "stop it first" in faults(answer)["status"]
    assert listed(api, headers, "runs") == [run]


def test_nothing_is_learned_from_an_archived_run_but_its_sweep_keeps_it(
    api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    with sessions.begin() as session:
        sweep = make_sweep(session)
        run = finished(session, sweep_id=sweep.id)
        make_forecast(session, run, at_compute=40.0)
        live = make_run(session, sweep_id=sweep.id, last_compute=40.0)
        assert len(told(session).record.scored) == len(learned(session, live)) == 1
    api.post(f"/v1/runs/{run.id}:archive", headers=headers["operate"]).raise_for_status()
    with sessions() as session:
        assert not told(session).record.scored
        assert not learned(session, session.get_one(Run, live.id))
    runs = api.get(f"/v1/sweeps/{sweep.id}", headers=headers["read"]).json()["runs"]
    assert {one["id"] for one in runs} == {run.id, live.id}
