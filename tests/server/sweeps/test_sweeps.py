"""Sweeps over HTTP: planned, created whole or not at all, stopped."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from forecurve.recipes import SCALERL_REVERSIONS
from server.events.models import Event, OutboxMessage
from server.recipes.models import RecipeRow
from server.runs.models import Run
from server.runs.states import Status
from server.sweeps.models import Sweep
from tests.conftest import Clock
from tests.server.reporting import Headers, faults, move

Sessions = sessionmaker[Session]

LEAVE_ONE_OUT: dict[str, Any] = {"preset": "scalerl", "design": {"kind": "leave_one_out"}}
ONE_FACTOR: dict[str, Any] = {
    "name": "lr",
    "preset": "scalerl",
    "changes": {"budget.compute": 30.0},
    "design": {"kind": "one_factor", "factors": {"optimizer.learning_rate": [1e-4, 1e-3]}, "seeds": [3, 4]},
}


def _count(sessions: Sessions, table: Any) -> int:
    with sessions() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def test_the_plan_shows_arms_runs_and_what_they_may_spend(
    api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    plan = api.post("/v1/sweeps:plan", json=ONE_FACTOR, headers=headers["read"]).json()
    assert [arm["name"] for arm in plan["arms"]] == ["control", "learning_rate=0.0001", "learning_rate=0.001"]
    assert [arm["is_control"] for arm in plan["arms"]] == [True, False, False]
    assert plan["arms"][1]["changes"] == {"optimizer.learning_rate": 1e-4}
    assert len({arm["recipe_digest"] for arm in plan["arms"]}) == 3
    assert plan["runs"] == 6
    assert plan["compute"] == {"total": 180.0, "unit": "CPU-seconds"}
    assert [_count(sessions, table) for table in (RecipeRow, Sweep, Run)] == [0, 0, 0]


def test_a_submission_creates_what_was_planned(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    plan = api.post("/v1/sweeps:plan", json=LEAVE_ONE_OUT, headers=headers["read"]).json()
    body = {**LEAVE_ONE_OUT, "plan_hash": plan["plan_hash"], "policy": "auto"}
    answer = api.post("/v1/sweeps", json=body, headers=headers["operate"])
    assert answer.status_code == 201, answer.text
    sweep = answer.json()
    names = ["control", *(f"no-{name}" for name in SCALERL_REVERSIONS)]
    assert [run["name"] for run in sweep["runs"]] == names, "control first"
    assert (sweep["policy"], sweep["plan_hash"]) == ("auto", plan["plan_hash"])
    assert sweep["statuses"] == {"queued": len(names)}
    assert sweep["sentence"] == f"{len(names)} runs: {len(names)} queued."
    for run, arm in zip(sweep["runs"], plan["arms"], strict=True):
        assert (run["status"], run["desired_state"], run["attempt"]) == ("queued", "run", 0)
        assert (run["changes"], run["is_control"], run["arm"]) == (arm["changes"], arm["is_control"], arm["name"])
        recipe = api.get(f"/v1/runs/{run['id']}/recipe", headers=headers["read"]).json()
        assert recipe["digest"] == arm["recipe_digest"]
        assert run["budget_compute"] == recipe["recipe"]["budget"]["compute"]
    assert api.get(f"/v1/sweeps/{sweep['id']}", headers=headers["read"]).json() == sweep
    (listed,) = api.get("/v1/sweeps", headers=headers["read"]).json()["items"]
    assert listed["statuses"] == {"queued": len(names)}
    with sessions() as session:
        assert session.scalars(select(OutboxMessage.task)).all() == ["worker.tasks.admit"]
        kinds = session.scalars(select(Event.kind).order_by(Event.id)).all()
        assert kinds == ["sweep.created", *["run.created"] * len(names)]


def test_each_seed_of_an_arm_is_a_run(api: TestClient, headers: Headers) -> None:
    runs = api.post("/v1/sweeps", json=ONE_FACTOR, headers=headers["operate"]).json()["runs"]
    assert [(run["name"], run["seed"]) for run in runs[:3]] == [
        ("control s3", 3),
        ("learning_rate=0.0001 s3", 3),
        ("learning_rate=0.001 s3", 3),
    ]
    assert [run["seed"] for run in runs[3:]] == [4, 4, 4]


def test_recipes_are_shared_between_sweeps(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    first = api.post("/v1/sweeps", json=LEAVE_ONE_OUT, headers=headers["operate"]).json()
    stored = _count(sessions, RecipeRow)
    again = api.post("/v1/sweeps", json=LEAVE_ONE_OUT, headers=headers["operate"]).json()
    assert again["id"] != first["id"]
    assert [run["recipe_id"] for run in again["runs"]] == [run["recipe_id"] for run in first["runs"]]
    assert _count(sessions, RecipeRow) == stored


def test_another_plan_than_the_one_looked_at_is_409(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    plan = api.post("/v1/sweeps:plan", json=LEAVE_ONE_OUT, headers=headers["read"]).json()
    body = {**ONE_FACTOR, "plan_hash": plan["plan_hash"]}
    answer = api.post("/v1/sweeps", json=body, headers=headers["operate"])
    assert answer.status_code == 409
    assert "sweeps:plan" in faults(answer)["plan_hash"]
    assert _count(sessions, Run) == 0


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "a field that does not exist": (
        {"preset": "scalerl", "design": {"kind": "one_factor", "factors": {"optimizer.lr": [1e-4]}}},
        "optimizer.lr",
        "no such field",
    ),
    "a value it does not take": (
        {"preset": "scalerl", "design": {"kind": "one_factor", "factors": {"algorithm.loss": ["ppo"]}}},
        "algorithm.loss",
        "cispo",
    ),
    "an unknown kind": ({"preset": "scalerl", "design": {"kind": "random"}}, "design.kind", "leave_one_out"),
    "an unknown key in the design": (
        {"preset": "scalerl", "design": {"kind": "leave_one_out", "seed": [1]}},
        "design.seed",
        "did you mean `seeds`",
    ),
    "a grid of a billion arms": (
        {
            "preset": "scalerl",
            "design": {
                "kind": "grid",
                "factors": {
                    "batch.prompts_per_step": list(range(1, 1001)),
                    "evaluation.every_steps": list(range(1, 1001)),
                    "checkpoint.every_steps": list(range(1, 1001)),
                },
            },
        },
        "design",
        "split the sweep",
    ),
    "an ingredient that the recipe lacks": (
        {"preset": "loo-dapo", "design": {"kind": "leave_one_out", "ingredients": ["cispo", "pipeline"]}},
        "design.ingredients",
        'lacks cispo (algorithm.loss is dapo, and ScaleRL\'s is cispo); set `ingredients` to ["pipeline"]',
    ),
    "a seed that is none": (
        {"preset": "scalerl", "design": {"kind": "leave_one_out", "seeds": [0, -1]}},
        "design.seeds.1",
        "at least 0",
    ),
    "two units of compute": (
        {"preset": "scalerl", "design": {"kind": "one_factor", "factors": {"budget.unit": ["GPU-hours"]}}},
        "design",
        "no curve could be compared",
    ),
    "no recipe": ({"design": {"kind": "leave_one_out"}}, "recipe", "preset"),
    "no design": ({"preset": "scalerl"}, "design", "required"),
}


@pytest.mark.parametrize("door", ["/v1/sweeps:plan", "/v1/sweeps"])
@pytest.mark.parametrize("case", BAD)
def test_a_bad_sweep_is_named_and_nothing_is_half_written(
    case: str, door: str, api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    body, field, message = BAD[case]
    answer = api.post(door, json=body, headers=headers["operate"])
    assert answer.status_code == 422, answer.text
    assert message in faults(answer)[field]
    assert [_count(sessions, table) for table in (RecipeRow, Sweep, Run, Event, OutboxMessage)] == [0] * 5


def test_stopping_a_sweep_stops_every_run_that_is_not_over(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock
) -> None:
    sweep = api.post("/v1/sweeps", json=ONE_FACTOR, headers=headers["operate"]).json()
    over = sweep["runs"][2]["id"]
    move(sessions, over, Status.FAILED, clock.now, "no luck")
    path = f"/v1/sweeps/{sweep['id']}:stop"
    stopped = api.post(path, json={"reason": "enough seen"}, headers=headers["operate"])
    assert stopped.status_code == 200, stopped.text
    wanted = {run["id"]: run["desired_state"] for run in stopped.json()["runs"]}
    assert wanted.pop(over) == "run"
    assert set(wanted.values()) == {"stop"}
    assert api.post(path, headers=headers["operate"]).json()["runs"] == stopped.json()["runs"]
    with sessions() as session:
        reasons = session.scalars(select(Event.reason).where(Event.kind == "run.desired")).all()
        assert reasons == ["enough seen"] * 5


def test_an_unknown_sweep_is_404(api: TestClient, headers: Headers) -> None:
    for answer in (
        api.get("/v1/sweeps/swp_nowhere", headers=headers["read"]),
        api.post("/v1/sweeps/swp_nowhere:stop", headers=headers["operate"]),
    ):
        assert answer.status_code == 404
        assert "GET /v1/sweeps" in faults(answer)["sweep_id"]
