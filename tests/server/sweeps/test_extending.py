"""A sweep gets further seeds of its arms and arms that it had not, whole or not at all, also when it is over."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from forecurve.recipes import load_recipe
from server.events.models import OutboxMessage
from server.recipes.models import RecipeRow
from server.runs.models import Run
from server.runs.room import Room
from server.runs.states import Status
from server.sweeps import extending
from server.sweeps.extending import add_seeds
from server.sweeps.schemas import MoreSeeds
from tests.at_once import at_once
from tests.conftest import Clock
from tests.server.forecasts.seeds import make_channel
from tests.server.reporting import Headers, move

Sessions = sessionmaker[Session]
LR = "optimizer.learning_rate"
SWEEP: dict[str, Any] = {
    "name": "lr",
    "preset": "scalerl",
    "changes": {"budget.compute": 30.0},
    "design": {"kind": "one_factor", "factors": {LR: [1e-4, 1e-3]}},
}
ARMS = ["control", "learning_rate=0.0001", "learning_rate=0.001"]


@pytest.fixture
def sweep(api: TestClient, headers: Headers) -> str:
    """Three arms with seed 0 each."""
    return str(api.post("/v1/sweeps", json=SWEEP, headers=headers["operate"]).json()["id"])


def extend(api: TestClient, headers: Headers, sweep: str, what: str, **body: Any) -> Any:
    return api.post(f"/v1/sweeps/{sweep}/{what}", json=body, headers=headers["operate"])


def seeds(api: TestClient, headers: Headers, sweep: str) -> dict[str, list[int]]:
    """Of each arm, in the order of its runs."""
    found: dict[str, list[int]] = defaultdict(list)
    for run in api.get(f"/v1/sweeps/{sweep}", headers=headers["read"]).json()["runs"]:
        found[run["arm"]].append(run["seed"])
    return dict(found)


def test_every_arm_gets_further_seeds(api: TestClient, headers: Headers, sweep: str, sessions: Sessions) -> None:
    answer = extend(api, headers, sweep, "seeds", seeds=2)
    assert answer.status_code == 201, answer.text
    assert seeds(api, headers, sweep) == {arm: [0, 1, 2] for arm in ARMS}
    runs = answer.json()["runs"]
    assert [run["name"] for run in runs if run["arm"] == "control"] == ["control", "control s1", "control s2"]
    assert [run["is_control"] for run in runs if run["arm"] == "control"] == [True] * 3
    with sessions() as session:
        rows = session.execute(select(Run, RecipeRow).join(RecipeRow, RecipeRow.id == Run.recipe_id).order_by(Run.id))
        of_arm: dict[str | None, set[str]] = defaultdict(set)
        for run, row in rows:
            recipe = load_recipe(row.body)
            assert (recipe.seed, run.status, run.budget_compute) == (run.seed, "queued", 30.0)
            of_arm[run.arm].add(recipe.model_copy(update={"seed": 0}).digest)
        assert [len(digests) for digests in of_arm.values()] == [1, 1, 1]  # a seed is all that tells them apart
        assert session.scalar(select(func.count()).select_from(OutboxMessage)) == 2  # both times they are admitted


def test_what_would_decide_an_arm_is_asked_for_at_once(api: TestClient, headers: Headers, sweep: str) -> None:
    extend(api, headers, sweep, "seeds", seeds=2, arms=[ARMS[1]], control_seeds=1)
    assert seeds(api, headers, sweep) == {ARMS[0]: [0, 1], ARMS[1]: [0, 1, 2], ARMS[2]: [0]}
    extend(api, headers, sweep, "seeds", seeds=1)  # of those that an arm lacks the lowest
    assert seeds(api, headers, sweep) == {ARMS[0]: [0, 1, 2], ARMS[1]: [0, 1, 2, 3], ARMS[2]: [0, 1]}
    extend(api, headers, sweep, "seeds", seeds=1, arms=[ARMS[2]])
    assert seeds(api, headers, sweep)[ARMS[2]] == [0, 1, 2]


def test_a_sweep_that_is_over_goes_on(
    api: TestClient, headers: Headers, sweep: str, sessions: Sessions, clock: Clock
) -> None:
    for run in api.get(f"/v1/sweeps/{sweep}", headers=headers["read"]).json()["runs"]:
        move(sessions, run["id"], Status.FAILED, clock.now)
    assert "over" in api.get(f"/v1/sweeps/{sweep}", headers=headers["read"]).json()["sentence"]
    assert extend(api, headers, sweep, "seeds", seeds=1).json()["sentence"].startswith("6 runs: 3 queued, 3 over.")


def test_that_a_sweep_is_over_is_not_told_where_it_was_extended_meanwhile(
    api: TestClient, headers: Headers, sweep: str, sessions: Sessions, clock: Clock
) -> None:
    with sessions.begin() as session:
        make_channel(session, "https://hook.example/x", hears=["ends"])
    for run in api.get(f"/v1/sweeps/{sweep}", headers=headers["read"]).json()["runs"]:
        move(sessions, run["id"], Status.FAILED, clock.now)
    assert len(api.get("/v1/deliveries", headers=headers["read"]).json()["items"]) == 1
    extend(api, headers, sweep, "seeds", seeds=1)
    assert api.get("/v1/deliveries", headers=headers["read"]).json()["items"] == []


def test_an_arm_comes_with_every_seed_of_the_control(
    api: TestClient, headers: Headers, sweep: str, sessions: Sessions
) -> None:
    answer = extend(api, headers, sweep, "arms", changes={LR: 5e-4, "budget.compute": 30.0})
    assert answer.status_code == 201, answer.text
    new = answer.json()["runs"][-1]
    assert (new["name"], new["arm"], new["seed"]) == ("learning_rate=0.0005", "learning_rate=0.0005", 0)
    assert (new["changes"], new["is_control"]) == ({LR: 5e-4}, False)  # what is as it was is no change
    extend(api, headers, sweep, "seeds", seeds=1, arms=["control"])
    named = extend(api, headers, sweep, "arms", name="DAPO", changes={"algorithm.loss": "dapo"}).json()["runs"]
    assert [(run["name"], run["seed"]) for run in named[-2:]] == [("DAPO s0", 0), ("DAPO s1", 1)]
    recipe = api.get(f"/v1/runs/{named[-1]['id']}/recipe", headers=headers["read"]).json()["recipe"]
    assert (recipe["algorithm"]["loss"], recipe["budget"]["compute"], recipe["seed"]) == ("dapo", 30.0, 1)


@pytest.mark.parametrize(
    ("what", "body", "field", "words"),
    [
        ("seeds", {}, "seeds", "required"),
        ("seeds", {"seeds": 0}, "seeds", "at least 1"),
        ("seeds", {"seeds": 101}, "seeds", "100"),
        ("seeds", {"seeds": 1.5}, "seeds", "whole number"),
        ("seeds", {"seeds": 1, "arms": []}, "arms", "1"),
        ("seeds", {"seeds": 1, "arms": ["contrl"]}, "arms.0", "did you mean `control`"),
        ("seeds", {"seeds": 1, "arms": ["control"], "control_seeds": 0}, "control_seeds", "no arm gets any"),
        ("arms", {"changes": {}}, "changes", "1"),
        ("arms", {"changes": {LR: 1e-4}, "name": "again"}, "changes", f"arm `{ARMS[1]}` has the same recipe"),
        ("arms", {"changes": {LR: 2e-4}, "name": "control"}, "name", "has an arm of this name"),
        ("arms", {"changes": {"budget.compute": 30.0}}, "changes", "change nothing of the base recipe"),
        ("arms", {"changes": {"seed": 3}}, "changes.seed", "is no factor"),
        ("arms", {"changes": {"name": "x"}}, "changes.name", "is no factor"),
        ("arms", {"changes": {"optimizer.lerning_rate": 1}}, "optimizer.lerning_rate", "learning_rate"),
        ("arms", {"changes": {"budget.unit": "steps"}}, "changes.budget.unit", "no curve could be compared"),
    ],
)
def test_what_cannot_be_added_is_refused_and_nothing_is_queued(
    api: TestClient, headers: Headers, sweep: str, what: str, body: dict[str, Any], field: str, words: str
) -> None:
    answer = extend(api, headers, sweep, what, **body)
    assert answer.status_code == 422, answer.text
    fault = answer.json()["errors"][0]
    assert fault["field"] == field
    assert words in fault["message"]
    assert seeds(api, headers, sweep) == {arm: [0] for arm in ARMS}


def test_a_sweep_has_so_many_runs_at_most(
    api: TestClient, headers: Headers, sweep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 5 * len(ARMS) + 2
    monkeypatch.setattr(extending, "MAX_RUNS", most)
    answer = extend(api, headers, sweep, "seeds", seeds=5)
    assert answer.status_code == 422
    fault = answer.json()["errors"][0]
    assert (fault["field"], fault["value"]) == ("seeds", 5)
    assert f"has {most:,} at most" in fault["message"]
    assert extend(api, headers, sweep, "seeds", seeds=4).status_code == 201
    assert extend(api, headers, sweep, "seeds", seeds=2, arms=["control"]).status_code == 201
    answer = extend(api, headers, sweep, "arms", changes={LR: 5e-6})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "changes")


def test_the_same_request_again_adds_nothing(api: TestClient, headers: Headers, sweep: str) -> None:
    once = headers["operate"] | {"Idempotency-Key": "k" * 32}
    answers = [api.post(f"/v1/sweeps/{sweep}/seeds", json={"seeds": 1}, headers=once) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert seeds(api, headers, sweep) == {arm: [0, 1] for arm in ARMS}


def test_two_who_extend_a_sweep_at_once_both_get_their_seeds(
    api: TestClient, headers: Headers, sweep: str, sessions: Sessions, clock: Clock
) -> None:
    def extended() -> None:
        with sessions.begin() as session:
            add_seeds(session, sweep, MoreSeeds(seeds=1, arms=["control"]), Room(), actor="test", now=clock.now)

    at_once(4, extended)
    assert seeds(api, headers, sweep)["control"] == [0, 1, 2, 3, 4]


def test_an_unknown_sweep_is_not_found(api: TestClient, headers: Headers) -> None:
    assert extend(api, headers, "unknown", "seeds", seeds=1).status_code == 404
    assert extend(api, headers, "unknown", "arms", changes={LR: 1e-4}).status_code == 404
