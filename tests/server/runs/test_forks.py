"""Forks over HTTP: where they begin, what is refused, which checkpoints the parent's trainer is told to leave."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from server.checkpoints.retention import Mark, kept
from server.events.models import Event, OutboxMessage
from server.runs.models import Run
from server.runs.states import Status
from tests.conftest import Clock
from tests.server.reporting import Headers, Reporter, evaluation, external_run, faults, launch, move, queued_run

Sessions = sessionmaker[Session]
BUDGET = {"budget.compute": 100, "budget.max_steps": 1000}


@pytest.fixture
def parent(api: TestClient, headers: Headers, sessions: Sessions, clock: Clock) -> Reporter:
    """A running run of ScaleRL that keeps its last two checkpoints, those of steps 50 and 100."""
    run_id = queued_run(api, headers, name="baseline", changes={**BUDGET, "checkpoint.keep_last": 2})
    trainer = launch(api, sessions, run_id, clock.now)
    checkpoint(trainer, 50)
    checkpoint(trainer, 100)
    return trainer


def checkpoint(trainer: Reporter, step: int, compute: float | None = None) -> str:
    """Reported, as a trainer does; its id."""
    digest = f"{trainer.attempt}{step:063}"
    body = {"step": step, "path": f"/runs/p/checkpoints/step_{step:06d}", "digest": digest, "size_bytes": 1}
    answer = trainer.post("checkpoints", body | {"compute": step / 10 if compute is None else compute})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def fork(api: TestClient, headers: Headers, run_id: str, who: str = "operate", **body: Any) -> Response:
    return api.post(f"/v1/runs/{run_id}/forks", json=body, headers=headers[who])


def forked(api: TestClient, headers: Headers, run_id: str, **body: Any) -> dict[str, Any]:
    answer = fork(api, headers, run_id, **body)
    assert answer.status_code == 201, answer.text
    view: dict[str, Any] = answer.json()
    return view


def test_a_fork_is_queued_with_the_parents_recipe_changed_and_says_where_it_begins(
    api: TestClient, headers: Headers, parent: Reporter
) -> None:
    changes = {"optimizer.learning_rate": 1e-4, "budget.compute": 200}
    child = forked(api, headers, parent.run_id, changes=changes, name="slower")
    items = api.get(f"/v1/runs/{parent.run_id}/checkpoints", headers=headers["read"]).json()["items"]
    newest = next(item["id"] for item in items if item["step"] == 100)
    assert child["parent"] == {"run_id": parent.run_id, "checkpoint_id": newest, "step": 100}
    assert (child["status"], child["name"], child["changes"]) == ("queued", "slower", changes)
    assert (child["budget_compute"], child["sweep_id"]) == (200, None)
    assert api.get(f"/v1/runs/{child['id']}", headers=headers["read"]).json() == child
    theirs, ours = (
        api.get(f"/v1/runs/{run_id}/recipe", headers=headers["read"]).json()["recipe"]
        for run_id in (parent.run_id, child["id"])
    )
    theirs["optimizer"]["learning_rate"], theirs["budget"]["compute"] = 1e-4, 200
    assert ours == theirs


def test_a_run_that_is_no_fork_has_no_parent(api: TestClient, headers: Headers, parent: Reporter) -> None:
    assert api.get(f"/v1/runs/{parent.run_id}", headers=headers["read"]).json()["parent"] is None


def test_a_fork_asks_for_a_place_and_is_in_the_log_of_both_runs(
    api: TestClient, headers: Headers, sessions: Sessions, parent: Reporter
) -> None:
    with sessions.begin() as session:
        asked = session.scalar(select(func.count()).where(OutboxMessage.task == "worker.tasks.admit"))
    child = forked(api, headers, parent.run_id)
    with sessions() as session:
        now = session.scalar(select(func.count()).where(OutboxMessage.task == "worker.tasks.admit"))
        (said,) = session.scalars(select(Event).where(Event.kind == "run.forked"))
        (created,) = session.scalars(select(Event).where(Event.run_id == child["id"]))
    assert now == (asked or 0) + 1
    begin = {"step": 100, "checkpoint": child["parent"]["checkpoint_id"]}
    assert (said.run_id, said.evidence) == (parent.run_id, {"fork": child["id"], **begin})
    assert (created.kind, created.evidence) == (
        "run.created",
        {"executor": "ray", "parent": parent.run_id, **begin},
    )
    assert said.actor == created.actor
    assert said.actor.startswith("tok_")


def test_a_checkpoint_is_chosen_by_step_or_by_id(api: TestClient, headers: Headers, parent: Reporter) -> None:
    by_step = forked(api, headers, parent.run_id, step=50)
    assert (by_step["parent"]["step"], by_step["name"]) == (50, "baseline from step 50")
    by_id = forked(api, headers, parent.run_id, checkpoint_id=by_step["parent"]["checkpoint_id"])
    assert by_id["parent"] == by_step["parent"]


def test_the_newest_checkpoint_is_that_of_the_newest_attempt(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock, parent: Reporter
) -> None:
    """Attempt 2 went on from step 50: what attempt 1 wrote at step 100 is another history."""
    move(sessions, parent.run_id, Status.LOST, clock.now)
    move(sessions, parent.run_id, Status.QUEUED, clock.now)
    second = launch(api, sessions, parent.run_id, clock.now)
    newest = checkpoint(second, 80)
    assert forked(api, headers, parent.run_id)["parent"]["checkpoint_id"] == newest
    gone = fork(api, headers, parent.run_id, step=100)
    assert gone.status_code == 409
    assert "fork it from step 80 or 50" in faults(gone)["step"]


def test_a_fork_without_changes_goes_on_with_a_run_that_was_stopped(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock, parent: Reporter
) -> None:
    move(sessions, parent.run_id, Status.STOPPED, clock.now)
    answer = api.post(f"/v1/runs/{parent.run_id}/forks", headers=headers["operate"])
    assert answer.status_code == 201, answer.text
    assert (answer.json()["changes"], answer.json()["parent"]["step"]) == ({}, 100)


def test_a_fork_can_be_forked_once_it_has_a_checkpoint(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock, parent: Reporter
) -> None:
    child = forked(api, headers, parent.run_id)
    early = fork(api, headers, child["id"])
    assert early.status_code == 409
    assert "has none yet" in faults(early)["checkpoint"]
    checkpoint(launch(api, sessions, child["id"], clock.now), 150)
    grandchild = forked(api, headers, child["id"])
    assert (grandchild["parent"]["run_id"], grandchild["parent"]["step"]) == (child["id"], 150)


def evaluated(trainer: Reporter, *steps: int) -> None:
    """Reported in one batch, at a tenth of the step in compute."""
    points = (evaluation(step, step / 10, (200 + step) / 1000, prompts=64, samples=4) for step in steps)
    assert trainer.send(1 + steps[0], *points).status_code == 200


def curve(api: TestClient, headers: Headers, run_id: str) -> list[tuple[int, int]]:
    """(attempt, step) of each point of the run's curve."""
    view = api.get(f"/v1/runs/{run_id}/curve", headers=headers["read"]).json()
    return [(point["attempt"], point["step"]) for point in view["points"]]


def refits(sessions: Sessions, run_id: str) -> int:
    with sessions() as session:
        asked = select(OutboxMessage).where(OutboxMessage.task == "worker.tasks.refit")
        return sum(run_id in message.args for message in session.scalars(asked))


def test_a_fork_with_a_larger_budget_goes_on_with_its_parents_curve_and_is_forecast_at_once(
    api: TestClient, headers: Headers, sessions: Sessions, parent: Reporter
) -> None:
    evaluated(parent, 10, 60, 100, 110)
    child = forked(api, headers, parent.run_id, changes={"budget.compute": 300, "checkpoint.keep_last": 3})
    assert curve(api, headers, child["id"]) == [(0, 10), (0, 60), (0, 100)]
    assert (child["last_step"], child["last_compute"], child["last_reward"]) == (100, 10.0, 0.3)
    assert refits(sessions, child["id"]) == 1
    assert curve(api, headers, parent.run_id) == [(1, 10), (1, 60), (1, 100), (1, 110)]


def test_what_the_fork_measures_itself_replaces_what_it_took_over(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock, parent: Reporter
) -> None:
    evaluated(parent, 60, 100)
    child = forked(api, headers, parent.run_id)
    evaluated(launch(api, sessions, child["id"], clock.now), 100, 110)
    assert curve(api, headers, child["id"]) == [(0, 60), (1, 100), (1, 110)]
    view = api.get(f"/v1/runs/{child['id']}/curve", headers=headers["read"]).json()
    assert view["restarts"] == [{"attempt": 1, "step": 100, "compute": 10.0}]


@pytest.mark.parametrize(
    "changes",
    [{"optimizer.learning_rate": 1e-4}, {"evaluation.prompts": 64}, {"seed": 7}, {"resources.generators": 2}],
    ids=lambda changes: next(iter(changes)),
)
def test_a_fork_that_takes_another_course_has_a_curve_of_its_own(
    api: TestClient, headers: Headers, sessions: Sessions, parent: Reporter, changes: dict[str, Any]
) -> None:
    evaluated(parent, 10, 60, 100)
    child = forked(api, headers, parent.run_id, changes=changes)
    assert curve(api, headers, child["id"]) == []
    assert child["last_step"] is None
    assert refits(sessions, child["id"]) == 0


def test_a_fork_whose_learning_rate_falls_towards_more_steps_has_a_curve_of_its_own(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock
) -> None:
    falling = {"budget.unit": "steps", "budget.compute": 200, "optimizer.schedule": "cosine"}
    trainer = launch(api, sessions, queued_run(api, headers, changes=falling), clock.now)
    checkpoint(trainer, 100, compute=100)
    points = (evaluation(step, step, 0.3, prompts=64, samples=4) for step in (10, 100))
    assert trainer.send(1, *points).status_code == 200
    assert curve(api, headers, forked(api, headers, trainer.run_id, changes={"budget.compute": 400})["id"]) == []
    same = forked(api, headers, trainer.run_id, changes={"budget.max_steps": 5000})
    assert curve(api, headers, same["id"]) == [(0, 10), (0, 100)]


def test_a_forks_curve_is_that_of_the_attempt_that_wrote_its_checkpoint(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock, parent: Reporter
) -> None:
    """Attempt 2 resumed at step 50. The checkpoint of step 50 is attempt 1's, and so is all that led to it."""
    evaluated(parent, 10, 50, 60)
    move(sessions, parent.run_id, Status.LOST, clock.now)
    move(sessions, parent.run_id, Status.QUEUED, clock.now)
    second = launch(api, sessions, parent.run_id, clock.now)
    evaluated(second, 40, 80)
    checkpoint(second, 80)
    from_first = forked(api, headers, parent.run_id, step=50)
    assert curve(api, headers, from_first["id"]) == [(0, 10), (0, 50)]
    from_second = forked(api, headers, parent.run_id, step=80)
    assert curve(api, headers, from_second["id"]) == [(0, 10), (0, 40), (0, 80)]


def test_a_fork_of_a_fork_has_the_curve_of_both(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock, parent: Reporter
) -> None:
    evaluated(parent, 60, 100)
    child = launch(api, sessions, forked(api, headers, parent.run_id)["id"], clock.now)
    evaluated(child, 100, 150, 160)
    checkpoint(child, 150)
    grandchild = forked(api, headers, child.run_id)
    assert curve(api, headers, grandchild["id"]) == [(0, 60), (0, 100), (0, 150)]


BAD: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "a step without a checkpoint": ({"step": 75}, 404, "step", "fork it from step 100 or 50"),
    "an unknown checkpoint": ({"checkpoint_id": "ckp_nowhere"}, 404, "checkpoint_id", "fork it from step 100 or 50"),
    "a step below zero": ({"step": -1}, 422, "step", "must be at least 0"),
    "a change that is no field": ({"changes": {"optimizer.learnin_rate": 1}}, 422, "optimizer.learnin_rate", "did you"),
    "a value out of range": ({"changes": {"optimizer.learning_rate": -1}}, 422, "optimizer.learning_rate", "more than"),
    "an unknown key": ({"budget": 5}, 422, "budget", "unknown field"),
    "no step left": ({"changes": {"budget.max_steps": 60}}, 422, "budget.max_steps", "is of step 100 already"),
    "no budget left": ({"changes": {"budget.compute": 10}}, 422, "budget.compute", "10 CPU-seconds were spent"),
    "another model": ({"changes": {"model.width": 128}}, 422, "model.width", "were made with 64"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_fork_is_named_with_the_way_out_and_nothing_is_stored(
    case: str, api: TestClient, headers: Headers, sessions: Sessions, parent: Reporter
) -> None:
    body, status, field, words = BAD[case]
    answer = fork(api, headers, parent.run_id, **body)
    assert answer.status_code == status, answer.text
    assert field in faults(answer)
    assert words in faults(answer)[field]
    with sessions() as session:
        assert session.scalars(select(Run.id)).all() == [parent.run_id]


IN_OTHER_UNITS = {
    "steps": ({"budget.unit": "steps", "budget.compute": 90}, "100 steps were spent"),
    "hours": ({"budget.unit": "CPU-hours", "budget.compute": 0.002}, "0.00277778 CPU-hours were spent"),
}


@pytest.mark.parametrize("unit", IN_OTHER_UNITS)
def test_a_budget_in_another_unit_is_held_against_what_was_spent_in_it(
    unit: str, api: TestClient, headers: Headers, parent: Reporter
) -> None:
    changes, words = IN_OTHER_UNITS[unit]
    answer = fork(api, headers, parent.run_id, changes=changes)
    assert answer.status_code == 422
    assert words in faults(answer)["budget.compute"]
    enough = changes | {"budget.compute": 2 * changes["budget.compute"]}
    child = forked(api, headers, parent.run_id, changes=enough)
    assert (child["compute_unit"], child["budget_compute"]) == (enough["budget.unit"], enough["budget.compute"])


def test_what_cpu_seconds_are_on_gpus_is_left_to_the_trainer(
    api: TestClient, headers: Headers, parent: Reporter
) -> None:
    changes = {"budget.unit": "GPU-hours", "budget.compute": 0.001, "resources.gpus": 1}
    assert forked(api, headers, parent.run_id, changes=changes)["compute_unit"] == "GPU-hours"


def test_a_run_without_a_checkpoint_cannot_be_forked_yet(api: TestClient, headers: Headers) -> None:
    answer = fork(api, headers, queued_run(api, headers, changes={"checkpoint.every_steps": 25}))
    assert answer.status_code == 409
    assert "writes one every 25 steps" in faults(answer)["checkpoint"]


def test_a_run_that_somebody_else_trains_cannot_be_forked_here(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers, preset="scalerl", compute_unit=None)
    checkpoint(run, 50)
    answer = fork(api, headers, run.run_id)
    assert answer.status_code == 409
    assert "launched by you" in faults(answer)["executor"]


def test_a_checkpoint_that_the_trainer_has_dropped_is_refused_with_those_that_are_left(
    api: TestClient, headers: Headers, parent: Reporter
) -> None:
    checkpoint(parent, 150)
    answer = fork(api, headers, parent.run_id, step=50)
    assert answer.status_code == 409
    assert faults(answer)["step"] == (
        "its files are gone: checkpoint.keep_last is 2, or a later attempt replaced it; fork it from step 150 or 100"
    )


def test_an_unknown_run_has_no_forks(api: TestClient, headers: Headers) -> None:
    for answer in (fork(api, headers, "run_nowhere"), api.get("/v1/runs/run_nowhere/forks", headers=headers["read"])):
        assert answer.status_code == 404
        assert "run_id" in faults(answer)


def test_who_may_only_read_cannot_fork(api: TestClient, headers: Headers, parent: Reporter) -> None:
    assert fork(api, headers, parent.run_id, who="read").status_code == 403
    assert api.get(f"/v1/runs/{parent.run_id}/forks", headers=headers["read"]).json()["items"] == []


def test_the_same_key_forks_once(api: TestClient, headers: Headers, parent: Reporter) -> None:
    key = headers["operate"] | {"Idempotency-Key": "once"}
    path = f"/v1/runs/{parent.run_id}/forks"
    first, again = (api.post(path, json={"step": 50}, headers=key) for _ in range(2))
    assert (first.status_code, again.json()) == (201, first.json())
    assert api.post(path, json={"step": 100}, headers=key).status_code == 409
    listed = api.get(path, headers=headers["read"]).json()["items"]
    assert [run["id"] for run in listed] == [first.json()["id"]]


def test_forks_are_listed_newest_first_and_only_the_parents_own(
    api: TestClient, headers: Headers, sessions: Sessions, parent: Reporter
) -> None:
    queued_run(api, headers)
    made = sorted((forked(api, headers, parent.run_id, step=step)["id"] for step in (50, 100)), reverse=True)
    path = f"/v1/runs/{parent.run_id}/forks"
    page = api.get(f"{path}?limit=1", headers=headers["read"]).json()
    rest = api.get(f"{path}?cursor={page['next_cursor']}", headers=headers["read"]).json()
    assert [run["id"] for run in page["items"] + rest["items"]] == made
    assert rest["next_cursor"] is None


def held(trainer: Reporter) -> list[int]:
    answer = trainer.beat()
    assert answer.status_code == 200, answer.text
    steps: list[int] = answer.json()["held_steps"]
    return steps


def test_the_parents_trainer_leaves_a_checkpoint_until_its_forks_have_their_own_or_are_over(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock, parent: Reporter
) -> None:
    assert held(parent) == []
    first = forked(api, headers, parent.run_id, step=50)["id"]
    second = forked(api, headers, parent.run_id, step=50)["id"]
    forked(api, headers, parent.run_id, step=100)
    assert held(parent) == [50, 100]
    trainer = launch(api, sessions, first, clock.now)
    trainer.beat()
    assert held(parent) == [50, 100], "it has begun, and would begin there again"
    checkpoint(trainer, 120)
    assert held(parent) == [50, 100], "the second still waits"
    move(sessions, second, Status.STOPPED, clock.now)
    assert held(parent) == [100]


def test_a_checkpoint_that_a_fork_waits_for_can_be_forked_again_though_newer_ones_came(
    api: TestClient, headers: Headers, parent: Reporter
) -> None:
    forked(api, headers, parent.run_id, step=50)
    for step in (150, 200):
        checkpoint(parent, step)
    assert forked(api, headers, parent.run_id, step=50)["parent"]["step"] == 50
    assert fork(api, headers, parent.run_id, step=100).status_code == 409


@given(
    steps=st.lists(st.integers(1, 60), min_size=1, max_size=12, unique=True).map(sorted),
    keep_last=st.integers(1, 4),
    keep_every=st.none() | st.integers(2, 20),
    held=st.sets(st.integers(1, 60), max_size=3),
)
def test_the_rule_of_what_is_kept_is_that_of_a_trainer_that_drops_at_every_write(
    steps: list[int], keep_last: int, keep_every: int | None, held: set[int]
) -> None:
    """Played through write by write, as `trainer.records.checkpoint.write` does it."""
    disk: list[int] = []
    for step in steps:
        disk.append(step)
        old = disk[:-keep_last]
        disk = [s for s in disk if s not in old or s in held or (keep_every and s % keep_every == 0)]
    reported = [Mark(f"ckp_{step}", 1, step) for step in steps]
    found = kept(reported, keep_last=keep_last, keep_every=keep_every, held=held)
    assert [each.step for each in found] == disk[::-1]
