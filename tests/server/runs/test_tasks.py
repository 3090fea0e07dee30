"""Runs without a recipe name their task, their arm and their seed: by these they are comparable with one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from server.forecasts.past_runs import arm_of, past_runs
from server.metrics.dirty import REFIT_TASK
from server.runs.models import Run
from tests.server.forecasts.seeds import add_evaluations, enqueued, make_run, sigmoid
from tests.server.reporting import Headers, external_run, faults

Sessions = sessionmaker[Session]

COMPUTE = np.linspace(0.0, 100.0, 21)
TASK = "gsm8k, 512 held-out prompts"


def finished(session: Session, **columns: Any) -> Run:
    run = make_run(session, **({"status": "succeeded", "executor": "external"} | columns))
    add_evaluations(session, run, COMPUTE, sigmoid(COMPUTE))
    return run


def test_runs_of_one_task_and_unit_tell_of_one_another(sessions: Sessions) -> None:
    with sessions.begin() as session:
        alike = finished(session, task=TASK)
        finished(session, task="gsm8k, all")
        finished(session, task=None)
        finished(session, task=TASK, compute_unit="steps")
        named, nameless = make_run(session, task=TASK), make_run(session, task=None)
        assert [one.id for one in past_runs(session, named)] == [alike.id]
        assert past_runs(session, nameless) == []


def test_seeds_of_an_arm_are_known_by_task_arm_and_seed(sessions: Sessions) -> None:
    with sessions.begin() as session:
        first, other, of_another, alone = (
            finished(session, task=TASK, arm="base", seed=0),
            finished(session, task=TASK, arm="base", seed=1),
            finished(session, task="maze", arm="base", seed=0),
            finished(session, task=TASK, arm="base", seed=None),
        )
        arms = [arm_of(session, run) for run in (first, other, of_another, alone)]
    assert arms[0] is not None
    assert arms[0] == arms[1] != arms[2]
    assert arms[3] is None


def test_a_run_says_what_it_named_and_is_found_by_it(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers, task=f" {TASK} ", arm="base", seed=3).run_id
    external_run(api, headers, task="maze")
    (found,) = api.get("/v1/runs", params={"task": TASK}, headers=headers["read"]).json()["items"]
    assert (found["id"], found["task"], found["arm"], found["seed"]) == (run, TASK, "base", 3)


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({"arm": "base", "seed": 1}, "task", "arm `base` needs it"),
        ({"arm": "base", "task": TASK}, "seed", "arm `base` needs it"),
        ({"task": " "}, "task", "nothing that can be seen"),
        ({"seed": -1}, "seed", "0"),
        ({"seed": 2**31}, "seed", "2147483647"),
        ({"preset": "scalerl", "task": TASK}, "task", "leave `task` out, or the recipe"),
        ({"preset": "scalerl", "seed": 2}, "seed", "leave `seed` out, or the recipe"),
        ({"preset": "scalerl", "executor": "ray", "task": TASK}, "task", "leave `task` out, or the recipe"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_field(
    body: dict[str, Any], field: str, says: str, api: TestClient, headers: Headers
) -> None:
    unit = {} if "preset" in body else {"compute_unit": "GPU-hours"}
    answer = api.post("/v1/runs", json={"executor": "external"} | unit | body, headers=headers["operate"])
    assert answer.status_code == 422, answer.text
    assert says in faults(answer)[field]
    assert api.get("/v1/runs", headers=headers["read"]).json()["items"] == []


def test_a_run_goes_on_with_the_task_that_it_has(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers, task=TASK, arm="base", seed=3).run_id
    path = f"/v1/runs/{run}/attempts"
    for field, other in (("task", "maze"), ("arm", "grpo"), ("seed", 4)):
        answer = api.post(path, json={field: other}, headers=headers["operate"])
        assert answer.status_code == 422
        assert "goes on with what it has" in faults(answer)[field]
    same = api.post(path, json={"task": TASK, "arm": "base", "seed": 3}, headers=headers["operate"])
    assert (same.status_code, same.json()["attempt"]) == (201, 2)


def test_a_task_is_named_later_changed_and_taken_back(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers, name="kept").run_id
    for task in (TASK, "maze", "maze", None):
        answer = api.patch(f"/v1/runs/{run}", json={"task": task}, headers=headers["operate"])
        assert (answer.status_code, answer.json()["task"], answer.json()["name"]) == (200, task, "kept")
    events = api.get(f"/v1/runs/{run}/events", headers=headers["read"]).json()["items"]
    changes = [(one["from_state"], one["to_state"]) for one in events if one["kind"] == "run.retasked"]
    assert changes == [("maze", None), (TASK, "maze"), (None, TASK)]


def test_a_live_run_is_forecast_anew_with_the_task_that_it_is_given(
    api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    """What other runs of the task tell does not wait for its next evaluation, which may be an hour away."""
    with sessions.begin() as session:
        live, over, bare = (make_run(session, arm=None, status=status) for status in ("running", "succeeded", "queued"))
        for run in (live, over):
            add_evaluations(session, run, [1.0, 2.0], [0.1, 0.2])
            run.dirty_at = None
    for run in (live, over, bare):
        api.patch(f"/v1/runs/{run.id}", json={"task": TASK}, headers=headers["operate"]).raise_for_status()
    with sessions() as session:
        assert enqueued(session, REFIT_TASK) == [[live.id]]
        assert [session.get_one(Run, run.id).dirty_at is not None for run in (live, over, bare)] == [True, False, False]


def test_a_task_that_a_recipe_or_an_arm_holds_stays(api: TestClient, headers: Headers) -> None:
    by_recipe = api.post("/v1/runs", json={"preset": "scalerl"}, headers=headers["operate"]).json()["id"]
    of_arm = external_run(api, headers, task=TASK, arm="base", seed=0).run_id
    for run, task, says in ((by_recipe, TASK, "has a recipe"), (of_arm, None, "is of arm `base`")):
        answer = api.patch(f"/v1/runs/{run}", json={"name": "not taken", "task": task}, headers=headers["operate"])
        assert answer.status_code == 409
        assert says in faults(answer)["task"]
        assert api.get(f"/v1/runs/{run}", headers=headers["read"]).json()["name"] != "not taken"
