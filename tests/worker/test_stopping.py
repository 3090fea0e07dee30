"""Stops and cancels on real Postgres against a fake Jobs API: from the wish to the end."""

from __future__ import annotations

from tests.worker.harness import World


def test_a_stop_is_cooperative(world: World):
    run = world.running()
    world.ask(run, "stop")
    world.reconcile()
    assert world.run(run).status == "stopping"
    assert world.beat(run), "the heartbeat's answer says stop"
    world.report(run, "stopped", "checkpoint written")
    world.ray.set(f"{run}-a1", "SUCCEEDED", driver_exit_code=0)
    world.reconcile(after_s=2)
    assert (world.run(run).status, world.run(run).reason) == ("stopped", "Stopped as asked")
    assert world.attempt(run).outcome_reason == "checkpoint written"
    assert world.ray.stops == []
    assert world.alerts() == []


def test_a_trainer_that_does_not_cooperate_is_stopped_after_the_grace(world: World):
    run = world.running()
    world.ask(run, "stop")
    world.reconcile()
    world.beat_for(run, 28)
    assert world.ray.stops == []
    world.reconcile_for(6)
    assert world.ray.stops == [f"{run}-a1"]
    assert world.run(run).status == "stopped"


def test_a_cancel_stops_the_job_at_once(world: World):
    run = world.running()
    world.ask(run, "cancel")
    world.reconcile()
    assert world.ray.stops == [f"{run}-a1"]
    world.reconcile(after_s=2)
    assert (world.run(run).status, world.run(run).reason) == ("stopped", "Cancelled; the executor ended the job")


def test_a_cancelled_run_keeps_the_persons_reason_and_not_the_signal_by_which_it_came_about(world: World):
    run = world.running()
    world.ask(run, "cancel", "now")
    world.reconcile()
    world.report(run, "stopped", "SIGTERM received")
    world.reconcile(after_s=2)
    assert (world.run(run).status, world.run(run).reason) == ("stopped", "Cancelled: now")


def test_a_queued_run_that_is_stopped_never_launches(world: World):
    run = world.add_run()
    world.ask(run, "stop")
    world.reconcile()
    assert world.statuses(run) == ["stopped"]
    assert world.admit() == []


def test_a_job_that_the_cluster_cannot_end_does_not_keep_its_place_for_ever(world: World):
    """As a job of Ray's does whose submission was cut off: it stays pending, and a stop finds nothing to end."""
    run = world.launched()
    world.ray.cannot_end = True
    world.ask(run, "cancel")
    world.reconcile_for(620, every_s=10)
    assert world.run(run).status == "stopping"
    world.reconcile_for(30, every_s=10)
    assert world.run(run).reason == (
        "Cancelled; the executor still calls the job pending, and nothing was heard of it since"
    )
    before = len(world.ray.stops)
    world.reconcile(after_s=2)
    assert len(world.ray.stops) == before + 1, "should it ever come to life it is ended"
