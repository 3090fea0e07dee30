"""Sweeps whose runs share one budget, over HTTP: submitted, changed, extended. Who trains on is in tests/worker."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.events.models import Event
from server.runs.models import Run
from server.runs.states import Status
from server.sweeps.allocation import allocation_view
from server.sweeps.models import Sweep, SweepComparison
from server.sweeps.service import sweep_runs
from tests.conftest import Clock
from tests.server.reporting import Headers, faults, move

Sessions = sessionmaker[Session]
SWEEP: dict[str, Any] = {
    "name": "lr",
    "preset": "scalerl",
    "changes": {"budget.compute": 30.0},
    "design": {"kind": "one_factor", "factors": {"optimizer.learning_rate": [1e-4, 1e-3]}},
}
NOT_YET = "Every run trains until it can be forecast; then it is said which of them train on."
PLANNED: dict[str, Any] = {
    "horizon": 30.0,
    "choice": None,
    "settled": False,
    "expected_regret": None,
    "over": None,
    "runs": [],
    "sentence": "As planned.",
    "planned_at": "2026-01-02T03:04:05+00:00",
}


def submit(api: TestClient, headers: Headers, **more: Any) -> Any:
    return api.post("/v1/sweeps", json=SWEEP | more, headers=headers["operate"])


def change(api: TestClient, headers: Headers, sweep: str, **body: Any) -> Any:
    return api.patch(f"/v1/sweeps/{sweep}", json=body, headers=headers["operate"])


@pytest.mark.parametrize(("given", "budget"), [({}, 90.0), ({"budget_compute": 40.0}, 40.0)])
def test_runs_share_what_is_given_or_the_sum_of_their_own(
    api: TestClient, headers: Headers, given: dict[str, float], budget: float
) -> None:
    sweep = submit(api, headers, policy="allocate", **given).json()
    assert (sweep["policy"], sweep["budget_compute"]) == ("allocate", budget)
    assert [(run["allocated"], run["goes_to"]) for run in sweep["runs"]] == [(True, 0.0)] * 3
    said = sweep["allocation"]
    assert (said["budget"], said["spent"], said["unit"], said["horizon"]) == (budget, 0.0, "CPU-seconds", 30.0)
    assert (said["choice"], said["planned_at"], said["runs"]) == (None, None, [])
    assert said["sentence"].startswith("Every run trains until it can be forecast")


def test_other_policies_share_nothing(api: TestClient, headers: Headers) -> None:
    sweep = submit(api, headers).json()
    assert (sweep["budget_compute"], sweep["allocation"]) == (None, None)
    assert not any(run["allocated"] for run in sweep["runs"])
    refused = submit(api, headers, policy="auto", budget_compute=40.0)
    assert refused.status_code == 422
    assert list(faults(refused)) == ["budget_compute"]


@pytest.mark.parametrize("budget", [0, -1.0, "much", 1e300])
def test_a_budget_that_cannot_be_is_refused(api: TestClient, headers: Headers, budget: Any) -> None:
    assert submit(api, headers, policy="allocate", budget_compute=budget).status_code == 422


def test_more_runs_than_are_compared_are_refused(api: TestClient, headers: Headers) -> None:
    many = SWEEP["design"] | {"factors": {"optimizer.learning_rate": [1e-5, 1e-4, 1e-3]}, "seeds": list(range(100))}
    refused = submit(api, headers, policy="allocate", design=many)
    assert (refused.status_code, list(faults(refused))) == (422, ["policy"])
    assert "400" in refused.text


def test_the_policy_and_the_budget_are_changed_while_it_goes_on(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock
) -> None:
    sweep = submit(api, headers).json()
    first, second, third = (run["id"] for run in sweep["runs"])
    move(sessions, first, Status.STOPPED, clock.now)
    assert api.post(f"/v1/runs/{second}:pause", headers=headers["operate"]).status_code < 300
    changed = change(api, headers, sweep["id"], policy="allocate").json()
    assert (changed["policy"], changed["budget_compute"]) == ("allocate", 90.0)
    ours = {run["id"]: run["allocated"] for run in changed["runs"]}
    assert ours == {first: False, second: False, third: True}, "what is over or was paused is not its to say"
    with sessions() as session:
        assert session.get_one(SweepComparison, sweep["id"]).dirty_at is not None
    assert change(api, headers, sweep["id"], budget_compute=70.0).json()["budget_compute"] == 70.0
    assert change(api, headers, sweep["id"], policy="allocate").json()["budget_compute"] == 70.0, "it stays"
    back = change(api, headers, sweep["id"], policy="advise").json()
    assert (back["budget_compute"], back["allocation"]) == (None, None)
    assert not any(run["allocated"] for run in back["runs"])
    with sessions() as session:
        told = session.scalars(select(Event).where(Event.kind == "sweep.policy").order_by(Event.id)).all()
    assert [(one.from_state, one.to_state, one.evidence["budget_compute"]) for one in told] == [
        ("advise", "allocate", 90.0),
        ("allocate", "allocate", 70.0),
        ("allocate", "advise", None),
    ]


def test_a_budget_needs_the_policy(api: TestClient, headers: Headers) -> None:
    sweep = submit(api, headers).json()["id"]
    refused = change(api, headers, sweep, budget_compute=40.0)
    assert (refused.status_code, list(faults(refused))) == (422, ["budget_compute"])
    assert change(api, headers, sweep, policy="allocate", budget_compute=40.0).status_code == 200


def test_further_runs_share_too_unless_all_is_spent(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    sweep = submit(api, headers, policy="allocate", budget_compute=40.0).json()
    more = api.post(f"/v1/sweeps/{sweep['id']}/seeds", json={"seeds": 1}, headers=headers["operate"])
    assert [run["allocated"] for run in more.json()["runs"]] == [True] * 6
    with sessions.begin() as session:
        session.get_one(Run, sweep["runs"][0]["id"]).last_compute = 41.0
    refused = api.post(f"/v1/sweeps/{sweep['id']}/seeds", json={"seeds": 1}, headers=headers["operate"])
    assert (refused.status_code, list(faults(refused))) == (409, ["budget_compute"])
    assert change(api, headers, sweep["id"], budget_compute=80.0).json()["allocation"]["spent"] == 41.0
    again = api.post(f"/v1/sweeps/{sweep['id']}/seeds", json={"seeds": 1}, headers=headers["operate"])
    assert again.status_code == 201


@pytest.mark.parametrize(("policy", "asked"), [("allocate", True), ("advise", False)])
def test_further_runs_have_all_thought_over_before_they_report(
    api: TestClient, headers: Headers, sessions: Sessions, policy: str, asked: bool
) -> None:
    sweep = submit(api, headers, policy=policy).json()
    with sessions.begin() as session:  # it had been over
        session.add(SweepComparison(sweep_id=sweep["id"], allocation=PLANNED | {"over": "it was"} if asked else None))
    api.post(f"/v1/sweeps/{sweep['id']}/seeds", json={"seeds": 1}, headers=headers["operate"])
    with sessions() as session:
        assert (session.get_one(SweepComparison, sweep["id"]).dirty_at is not None) is asked


@pytest.mark.parametrize("act", ["pause", "stop", "cancel"])
def test_what_a_person_says_of_a_run_makes_it_theirs(api: TestClient, headers: Headers, act: str) -> None:
    run = submit(api, headers, policy="allocate").json()["runs"][0]["id"]
    found = api.post(f"/v1/runs/{run}:{act}", headers=headers["operate"]).json()
    assert (found["allocated"], found["goes_to"]) == (False, None)


def test_where_no_run_is_the_sweeps_that_is_said(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock
) -> None:
    sweep = submit(api, headers).json()
    first, *others = (run["id"] for run in sweep["runs"])
    move(sessions, first, Status.STOPPED, clock.now)
    for run in others:
        assert api.post(f"/v1/runs/{run}:pause", headers=headers["operate"]).status_code < 300
    said = change(api, headers, sweep["id"], policy="allocate").json()["allocation"]
    assert said["over"] == "each is over, or left to its user"
    assert said["sentence"] == "No run goes on by its sweep: each is over, or left to its user."


def test_what_was_planned_before_the_policy_was_taken_away_is_told_no_more(
    api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    sweep = submit(api, headers, policy="allocate").json()["id"]
    change(api, headers, sweep, budget_compute=70.0)
    with sessions.begin() as session:
        session.get_one(SweepComparison, sweep).allocation = PLANNED
    assert change(api, headers, sweep, budget_compute=80.0).json()["allocation"]["sentence"] == "As planned."
    change(api, headers, sweep, policy="advise")
    again = change(api, headers, sweep, policy="allocate").json()["allocation"]
    assert (again["planned_at"], again["sentence"]) == (None, NOT_YET)


def test_why_nothing_is_said_stands_beside_a_comparison(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    sweep = submit(api, headers, policy="allocate").json()["id"]
    change(api, headers, sweep, budget_compute=70.0)
    with sessions.begin() as session:
        row = session.get_one(SweepComparison, sweep)
        row.allocation, row.result = PLANNED, {"sentence": "Compared."}
        row.note = "Who trains on could not be said. It is tried again."
        told = allocation_view(session, session.get_one(Sweep, sweep), list(sweep_runs(session, sweep)))
    assert told is not None
    assert told.sentence == "Who trains on could not be said. It is tried again. As planned."
