"""Attempts that are lost with their machine, their cluster or our sight of them: the run goes on with the next."""

from __future__ import annotations

import pytest

from server.runs.fencing import Superseded
from tests.worker.harness import World


def test_a_node_that_dies_costs_an_attempt_and_not_the_run(world: World):
    run = world.running()
    world.ray.set(f"{run}-a1", "FAILED", error_type="JOB_SUPERVISOR_ACTOR_DIED", message="The supervisor died.")
    world.reconcile_for(10)
    assert world.statuses(run) == ["launching", "running", "lost", "queued"]
    assert "The supervisor died." in (world.run(run).reason or "")
    assert world.admit() == [], "it waits before it tries again"
    world.wait(5)
    (attempt_id,) = world.admit()
    world.launch(attempt_id)
    assert world.ray.submissions == [f"{run}-a1", f"{run}-a2"]
    world.beat(run, attempt=2)
    assert world.run(run).status == "running"
    assert world.alerts() == []


def test_a_learner_that_is_killed_costs_an_attempt_and_not_the_run(world: World):
    run = world.running()
    world.report(run, "lost", "the learner died during a step. Lost after step 7")
    world.ray.set(f"{run}-a1", "FAILED", error_type="JOB_ENTRYPOINT_COMMAND_ERROR", driver_exit_code=75)
    world.reconcile()
    assert world.statuses(run)[-2:] == ["lost", "queued"]
    world.wait(5)
    assert len(world.admit()) == 1
    assert world.alerts() == []


def test_a_run_whose_every_attempt_dies_fails_with_an_alert(world: World):
    run = world.add_run()
    for number in (1, 2, 3):
        world.wait(30)
        (attempt_id,) = world.admit()
        world.launch(attempt_id)
        world.ray.set(f"{run}-a{number}", "FAILED", driver_exit_code=137, message="killed")
        world.reconcile_for(40)
    assert world.run(run).status == "failed"
    assert (world.run(run).reason or "").endswith("Given up after 3 attempts.")
    assert len(world.alerts()) == 1


def test_a_cluster_that_was_restarted_loses_its_jobs_but_not_the_runs(world: World):
    run = world.running()
    world.ray.forget()
    world.reconcile_for(20)
    assert world.run(run).status == "running", "an executor that knows nobody may be mistaken"
    world.reconcile_for(20)
    assert world.statuses(run)[-2:] == ["lost", "queued"]


def test_a_run_that_trained_when_the_service_was_stopped_is_before_those_behind_it(world: World):
    world.settings.max_concurrent_runs = 1
    trained = world.running()
    world.wait(1)
    waits = world.add_run()
    assert world.admit() == [], "there is one place"
    world.wait(60)
    world.settings.ray_since = world.now
    world.ray.forget()
    world.reconcile()
    assert world.statuses(trained)[-2:] == ["lost", "queued"]
    assert len(world.admit()) == 1
    assert (world.run(trained).attempt, world.run(waits).attempt) == (2, 0)


def test_a_service_that_is_restarted_any_number_of_times_uses_up_no_attempts(world: World):
    """It ends its own cluster each time, and its trainers with it."""
    run = world.add_run()
    for number in range(1, 6):
        (attempt_id,) = world.admit()
        world.launch(attempt_id)
        world.ray.set(f"{run}-a{number}", "RUNNING")
        world.beat(run, attempt=number)
        world.reconcile()
        world.wait(3600)
        world.ray.forget()
        world.settings.ray_since = world.now
        world.reconcile(after_s=3)
        assert (world.run(run).status, world.run(run).excused_attempts) == ("queued", number)
        world.wait(5)
    assert world.alerts() == []


def test_a_cluster_elsewhere_that_was_away_together_with_us_uses_up_no_attempt_either(world: World):
    run = world.running()
    world.reconcile()
    world.wait(3600)
    world.ray.forget()
    world.reconcile_for(40)
    assert (world.run(run).status, world.run(run).excused_attempts) == ("queued", 1)


def test_a_trainer_that_still_reports_is_not_given_up_because_the_cluster_forgot_it(world: World):
    run = world.running()
    world.ray.forget()
    for _ in range(30):
        world.reconcile(after_s=4)
        world.beat(run)
    assert world.run(run).status == "running"


def test_an_executor_that_changed_its_mind_must_stand_by_its_word_anew(world: World):
    run = world.running()
    forgotten = dict(world.ray.jobs)
    world.ray.forget()
    world.reconcile()
    world.ray.jobs |= forgotten
    world.reconcile_for(40)
    world.ray.set(f"{run}-a1", "FAILED", error_type="JOB_SUPERVISOR_ACTOR_DIED")
    world.reconcile(after_s=2)
    assert world.run(run).status == "suspect"
    world.reconcile_for(10)
    assert world.run(run).status == "queued"


def test_late_reports_of_a_superseded_attempt_change_nothing(world: World):
    run = world.running()
    world.ray.set(f"{run}-a1", "FAILED", error_type="JOB_SUPERVISOR_ACTOR_DIED")
    world.reconcile_for(20)
    world.wait(5)
    (attempt_id,) = world.admit()
    world.launch(attempt_id)
    world.beat(run, attempt=2)
    assert world.beat(run, attempt=1), "the old trainer is told to stop"
    with pytest.raises(Superseded):
        world.report(run, "failed", attempt=1)
    world.reconcile_for(10)
    assert world.run(run).status == "running"


@pytest.mark.parametrize(("days", "days_away"), [(0, 0), (3, 0), (0, 4)])
def test_a_job_that_outlived_its_attempt_is_ended(world: World, days: int, days_away: int):
    """The executor was away for so long that the attempt was given up; the job ran on all the while."""
    run = world.running()
    world.wait(days * 86_400)
    world.beat(run)
    world.reconcile()
    world.ray.blind = True
    world.reconcile_for(660, every_s=10)
    assert world.run(run).status == "queued"
    assert world.ray.stops == []
    world.wait(days_away * 86_400)
    world.ray.blind = False
    world.reconcile()
    assert world.ray.stops == [f"{run}-a1"]
    world.reconcile(after_s=2)
    world.reconcile(after_s=2)
    assert world.ray.stops == [f"{run}-a1"], "once it is over it is let be"
    assert world.attempt(run).observed == "stopped"


def test_a_job_that_comes_to_light_after_its_run_was_cancelled_is_ended(world: World):
    """The submission's answer is lost, and the head is so busy that it shows the job only after a minute."""
    run = world.add_run()
    (attempt_id,) = world.admit()
    world.ray.hang = True
    hidden = {}
    world.ray.before_answer = lambda reference: hidden.update({reference: world.ray.jobs.pop(reference)})
    world.launch(attempt_id)
    world.ask(run, "cancel")
    world.reconcile_for(60)
    assert world.run(run).status == "stopped"
    world.ray.jobs |= hidden
    world.reconcile(after_s=2)
    assert world.ray.stops == [f"{run}-a1"]


def test_a_cluster_that_is_away_for_long_uses_up_no_attempts(world: World):
    world.ray.stop()
    run = world.add_run()
    for _ in range(5):
        (attempt_id,) = world.admit()
        world.launch(attempt_id)
        world.reconcile_for(330, every_s=10)
        assert world.run(run).status == "queued"
    assert (world.run(run).excused_attempts, world.alerts()) == (5, [])
    assert "did not answer the submission" in (world.run(run).reason or "")
    world.ray.start()
    (attempt_id,) = world.admit()
    world.launch(attempt_id)
    assert world.ray.submissions == [f"{run}-a6"]


def test_a_cluster_that_answers_and_takes_no_job_uses_up_attempts(world: World):
    world.ray.fails_with = (500, "Traceback\nOSError: disk full")
    run = world.add_run()
    for _ in range(3):
        (attempt_id,) = world.admit()
        world.launch(attempt_id)
        world.reconcile_for(330, every_s=10)
    assert world.run(run).status == "failed"
    assert "disk full" in (world.run(run).reason or "")
