"""Pauses on real Postgres against a fake Jobs API: from the wish to the attempt that goes on."""

from __future__ import annotations

import pytest

from server.runs.fencing import Superseded
from tests.worker.harness import World


def paused(world: World) -> str:
    """A run that was paused while it ran, having written a checkpoint of step 6."""
    run = world.running()
    pause(world, run, 1, 6)
    return run


def pause(world: World, run: str, attempt: int, step: int | None) -> None:
    world.pause(run)
    world.reconcile(after_s=1)
    assert world.beat(run, attempt), "the heartbeat's answer says stop"
    if step is not None:
        world.checkpoint(run, step, attempt)
    world.report(run, "stopped", "The run is to pause.", attempt)
    world.ray.set(f"{run}-a{attempt}", "SUCCEEDED", driver_exit_code=0)
    world.reconcile(after_s=2)
    assert world.run(run).status == "paused"


def next_attempt(world: World, run: str) -> int:
    (attempt_id,) = world.admit()
    world.launch(attempt_id)
    number = world.run(run).attempt
    world.ray.set(f"{run}-a{number}", "RUNNING")
    world.beat(run, number)
    return number


def test_a_pause_is_cooperative_and_gives_the_place_away(world: World):
    world.settings.max_concurrent_runs = 1
    run = world.running()
    other = world.add_run()
    assert world.admit() == []
    pause(world, run, 1, 6)
    assert world.run(run).reason == "Paused as asked. Resumed, it goes on from its checkpoint of step 6."
    assert world.statuses(run) == ["launching", "running", "pausing", "paused"]
    assert world.ray.stops == []
    assert world.outbox()[-1] == ("worker.tasks.admit", [])
    world.admit()
    assert world.run(other).status == "launching"


def test_a_paused_run_stays_so_in_silence_until_it_is_resumed(world: World):
    run = paused(world)
    world.reconcile_for(1200, every_s=20)
    assert (world.run(run).status, world.run(run).finished_at, world.alerts()) == ("paused", None, [])
    assert world.admit() == []
    world.resume(run)
    assert (world.run(run).status, world.run(run).desired_state) == ("queued", "run")
    assert next_attempt(world, run) == 2
    world.reconcile(after_s=2)
    assert world.statuses(run)[-4:] == ["paused", "queued", "launching", "running"]


def test_what_the_paused_attempt_still_says_is_refused(world: World):
    run = paused(world)
    assert world.beat(run)
    with pytest.raises(Superseded):
        world.checkpoint(run, 7)
    world.resume(run)
    with pytest.raises(Superseded):
        world.checkpoint(run, 7)
    assert world.run(run).status == "queued", "a heartbeat does not start it"


def test_pauses_use_up_no_attempts(world: World):
    run = world.running()
    for attempt in range(1, 5):
        pause(world, run, attempt, step=attempt)
        world.resume(run)
        assert next_attempt(world, run) == attempt + 1
    world.ray.set(f"{run}-a5", "FAILED", error_type="JOB_SUPERVISOR_ACTOR_DIED")
    world.reconcile_for(20)
    assert world.run(run).status == "queued", "the first that is held against it, of three"


@pytest.mark.parametrize(
    ("step", "goes_on"),
    [
        (6, "Resumed, it goes on from its checkpoint of step 6."),
        (None, "It has no checkpoint of its own: resumed, it begins again at step 0."),
    ],
)
def test_a_job_that_dies_while_it_pauses_ends_paused(world: World, step: int | None, goes_on: str):
    run = world.running()
    if step is not None:
        world.checkpoint(run, step)
    world.pause(run)
    world.reconcile()
    world.ray.set(f"{run}-a1", "FAILED", error_type="JOB_SUPERVISOR_ACTOR_DIED", message="The supervisor died.")
    world.reconcile_for(20)
    assert world.run(run).reason == f"Paused as asked. The supervisor died. {goes_on}"
    assert world.statuses(run)[-2:] == ["pausing", "paused"]
    assert world.alerts() == []


def test_a_trainer_that_does_not_come_to_its_pause_is_ended_after_the_grace(world: World):
    run = world.running()
    world.pause(run)
    world.reconcile()
    world.beat_for(run, 28)
    assert world.ray.stops == []
    world.reconcile_for(6)
    assert world.ray.stops == [f"{run}-a1"]
    assert world.run(run).status == "paused"


def test_a_run_that_is_done_before_it_comes_to_its_pause_has_succeeded(world: World):
    run = world.running()
    world.pause(run)
    world.reconcile()
    world.report(run, "succeeded", "budget reached")
    world.ray.set(f"{run}-a1", "SUCCEEDED", driver_exit_code=0)
    world.reconcile(after_s=2)
    assert (world.run(run).status, world.run(run).reason) == ("succeeded", "budget reached")


def test_people_are_told_of_a_run_that_failed_on_its_way_to_a_pause(world: World):
    run = world.running()
    world.pause(run)
    world.reconcile()
    world.report(run, "failed", "loss is nan")
    world.ray.set(f"{run}-a1", "FAILED", driver_exit_code=1)
    world.reconcile(after_s=2)
    assert world.run(run).status == "failed"
    assert [alert.kind for alert in world.alerts()] == ["run_failed"]


def test_a_run_that_is_being_launched_is_paused_without_its_job(world: World):
    pending, unsubmitted = world.launched(), world.add_run()
    world.admit()
    for run in (pending, unsubmitted):
        world.pause(run)
    world.reconcile_for(6)
    assert world.ray.stops == [f"{pending}-a1"]
    for run in (pending, unsubmitted):
        assert world.run(run).status == "paused"
        world.resume(run)
    assert len(world.admit()) == 2


@pytest.mark.parametrize("wanted", ["stop", "cancel"])
def test_a_paused_run_that_is_to_end_ends_at_once(world: World, wanted: str):
    run = paused(world)
    world.ask(run, wanted)
    world.reconcile()
    assert (world.run(run).status, world.run(run).finished_at) == ("stopped", world.now)
    assert world.ray.stops == []


def test_a_job_that_outlived_its_pause_is_ended(world: World):
    """The executor was away for so long that nobody could say whether the job had ended."""
    run = world.running()
    world.pause(run)
    world.ray.blind = True
    world.reconcile_for(660, every_s=10)
    assert world.run(run).status == "paused"
    world.ray.blind = False
    world.ray.set(f"{run}-a1", "RUNNING")
    world.ray.stops.clear()
    world.reconcile(after_s=2)
    assert world.ray.stops == [f"{run}-a1"]
