"""Runs that are over elsewhere come in whole, once, and tell of those after them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from server.access.models import Token
from server.alerts.models import Alert
from server.events.models import Event
from server.forecasts.models import Recommendation
from server.forecasts.past_runs import past_runs
from server.runs.models import Run
from server.settings import Settings
from tests.conftest import Clock
from tests.server.forecasts.seeds import make_run, sigmoid
from tests.server.reporting import Headers, external_run, faults
from tests.worker.refitting import forecasts
from worker.refit import refit

Sessions = sessionmaker[Session]

SETTINGS = Settings(DATABASE_URL="postgresql://unused", REDIS_URL="redis://unused", refit_every_s=0)
COMPUTE = np.linspace(0.0, 100.0, 21)


def curve(A: float = 0.78) -> list[dict[str, Any]]:
    rewards = sigmoid(COMPUTE, A=A)
    return [
        {"step": step, "compute": float(at), "reward": float(reward), "prompts": 512, "samples": 4}
        for step, (at, reward) in enumerate(zip(COMPUTE, rewards, strict=True))
    ]


@pytest.fixture
def take(api: TestClient, headers: Headers):
    def post(scope: str = "operate", **body: Any) -> Response:
        told = {"name": "old", "compute_unit": "GPU-hours", "task": "gsm8k", "evaluations": curve()}
        return api.post("/v1/runs:import", json=told | body, headers=headers[scope])

    return post


def count(sessions: Sessions, kind: Any) -> int:
    with sessions() as session:
        return session.scalar(select(func.count()).select_from(kind)) or 0


def test_the_same_evaluations_in_another_order_are_that_run_too(take) -> None:
    first = take()
    again = take(evaluations=curve()[::-1])
    assert (again.status_code, again.json()["id"], again.json()["was_there"]) == (200, first.json()["id"], True)


def test_a_run_that_is_over_comes_in_whole(take, api: TestClient, headers: Headers) -> None:
    answer = take(arm="base", seed=3)
    assert answer.status_code == 201, answer.text
    run = answer.json()
    assert (run["status"], run["executor"], run["reason"]) == ("succeeded", "external", "Imported: it was over.")
    assert (run["task"], run["arm"], run["seed"], run["was_there"]) == ("gsm8k", "base", 3, False)
    assert (run["budget_compute"], run["last_compute"]) == (100.0, 100.0)
    kept = api.get(f"/v1/runs/{run['id']}/evaluations", headers=headers["read"]).json()["items"]
    assert [(one["step"], one["reward"]) for one in kept] == [(one["step"], one["reward"]) for one in curve()]


def test_the_very_same_run_comes_in_once(take, sessions: Sessions) -> None:
    first = take().json()
    again = take(name="another name")
    assert (again.status_code, again.json()["id"], again.json()["was_there"]) == (200, first["id"], True)
    assert again.json()["name"] == "old"
    changed = [{"seed": 1}, {"task": "maze"}, {"task": None}, {"compute_unit": "steps"}, {"evaluations": curve(0.7)}]
    others = [take(**change) for change in changed]
    assert [answer.status_code for answer in others] == [201] * 5
    assert count(sessions, Run) == 6


def test_a_run_that_was_told_another_task_since_comes_in_once_by_either(
    take, api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    first = take().json()["id"]
    told = api.patch(f"/v1/runs/{first}", json={"task": "maze"}, headers=headers["operate"])
    assert told.json()["task"] == "maze"
    as_it_came, as_it_is = take(), take(task="maze")
    assert [answer.json()["id"] for answer in (as_it_came, as_it_is)] == [first, first]
    assert take(task="maze", seed=3).status_code == take(task="maze", evaluations=curve(0.7)).status_code == 201
    assert count(sessions, Run) == 3


def test_a_run_that_came_in_before_it_was_over_comes_in_again_with_the_rest(
    take, api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    """As a second run it would count twice among the past of its task."""
    first = take(evaluations=curve()[:12]).json()
    assert (first["added"], first["budget_compute"]) == (12, 55.0)
    again = take()
    assert again.status_code == 200, again.text
    run = again.json()
    assert (run["id"], run["was_there"], run["added"]) == (first["id"], True, 9)
    assert (run["budget_compute"], run["last_compute"], run["status"]) == (100.0, 100.0, "succeeded")
    kept = api.get(f"/v1/runs/{run['id']}/evaluations", headers=headers["read"]).json()["items"]
    assert [(one["step"], one["reward"]) for one in kept] == [(one["step"], one["reward"]) for one in curve()]
    for known in (take(), take(name="another name"), take(evaluations=curve()[:15]), take(evaluations=curve()[:12])):
        assert (known.json()["id"], known.json()["was_there"], known.json()["added"]) == (run["id"], True, 0)
    assert count(sessions, Run) == 1
    with sessions() as session:
        assert session.get_one(Run, run["id"]).dirty_at is not None, "it is fitted anew"
        new = make_run(session, task="gsm8k", compute_unit="GPU-hours")
        assert [len(one.points) for one in past_runs(session, new, [])] == [21]


def test_a_run_that_was_reported_here_by_counts_comes_in_as_itself(
    take, api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    counted = [{"step": step, "compute": float(step), "counts": [step % 3, 2, 1], "samples": 4} for step in range(1, 7)]
    run = external_run(api, headers, name="old", task="gsm8k")
    assert run.send(1, *counted).status_code == 200
    again = take(evaluations=counted)
    assert (again.status_code, again.json()["id"], again.json()["was_there"]) == (200, run.run_id, True)
    assert count(sessions, Run) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"name": "another name"},
        {"arm": "base", "seed": 1},
        {"compute_unit": "steps"},
        {"evaluations": curve(0.7)},
        {"evaluations": [one | {"step": one["step"] + 1} for one in curve()]},
    ],
)
def test_what_only_begins_alike_is_another_run(take, sessions: Sessions, change: dict[str, Any]) -> None:
    take(evaluations=curve()[:12])
    assert take(**change).status_code == 201
    assert count(sessions, Run) == 2


def test_a_start_that_is_the_same_makes_no_two_runs_one(take, sessions: Sessions) -> None:
    assert [take(evaluations=curve()[:3]).status_code, take().status_code] == [201, 201]
    assert count(sessions, Run) == 2


def test_it_is_the_past_of_runs_of_its_task_and_nobody_is_told_to_act_on_it(
    take, api: TestClient, headers: Headers, sessions: Sessions, clock: Clock
) -> None:
    fallen = [one | {"reward": one["reward"] if one["step"] < 12 else 0.05} for one in curve()]
    ids = [take(evaluations=evaluations).json()["id"] for evaluations in (curve(), fallen)]
    for run_id in ids:
        refit(sessions, SETTINGS, run_id, clock.now)
        assert forecasts(sessions, run_id)
    assert (count(sessions, Alert), count(sessions, Recommendation)) == (0, 0)
    assert all(run["advice"] is None for run in api.get("/v1/runs", headers=headers["read"]).json()["items"])
    assert api.get("/v1/track-record", headers=headers["read"]).json()["forecasts"] == []
    with sessions.begin() as session:
        assert {one.id for one in past_runs(session, make_run(session, task="gsm8k"))} == set(ids)


def test_it_has_no_token_for_reports_and_its_history_says_that_it_came_in(take, sessions: Sessions) -> None:
    before = count(sessions, Token)
    run_id = take().json()["id"]
    assert count(sessions, Token) == before
    with sessions() as session:
        reasons = session.scalars(select(Event.reason).where(Event.run_id == run_id, Event.kind == "run.status")).all()
    assert reasons[-1] == "Imported: it was over."


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({"evaluations": []}, "evaluations", "at least 1"),
        ({"evaluations": [{"step": 1, "compute": 1.0, "reward": 1.5}]}, "evaluations.0.reward", "0 to 1"),
        ({"evaluations": [{"step": 1, "compute": "NaN", "reward": 0.5}]}, "evaluations.0.compute", "finite"),
        (
            {"evaluations": [{"step": s, "compute": 5.0 - s, "reward": 0.5} for s in (1, 2)]},
            "evaluations.1.compute",
            "backwards",
        ),
        ({"arm": "base"}, "seed", "needs it"),
        ({"compute_unit": "dollars"}, "compute_unit", "GPU-hours"),
        ({"recipe": {}}, "recipe", ""),
    ],
)
def test_of_what_does_not_hold_nothing_is_kept(
    body: dict[str, Any], field: str, says: str, take, sessions: Sessions
) -> None:
    answer = take(**body)
    assert answer.status_code == 422, answer.text
    assert says in faults(answer)[field]
    assert count(sessions, Run) == 0


def test_who_may_only_read_imports_nothing(take) -> None:
    assert take("read").status_code == 403
