"""The reconciler on real Postgres against a fake Jobs API: whole stories, from launch to the end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from server.alerts.models import BELOW_FORECAST
from server.alerts.service import open_alert
from server.runs.models import Attempt, Run
from server.runs.ticks import Tick
from tests.worker.harness import World
from worker.apply import apply
from worker.refit import refit


def test_a_run_goes_from_launch_to_success(world: World):
    run = world.running()
    world.report(run, "succeeded", "budget reached")
    world.ray.set(f"{run}-a1", "SUCCEEDED", driver_exit_code=0)
    world.reconcile()
    assert world.statuses(run) == ["launching", "running", "succeeded"]
    over = world.run(run)
    assert (over.reason, over.finished_at) == ("budget reached", world.now)
    assert ("worker.tasks.refit", [run]) in world.outbox()
    assert ("worker.tasks.admit", []) in world.outbox()
    assert world.alerts() == []


def test_a_failing_trainer_fails_its_run_and_people_are_told_why(world: World):
    run = world.running(name="no-cispo", last_compute=12.25)
    reference = f"{run}-a1"
    world.ray.set(
        reference,
        "FAILED",
        error_type="JOB_ENTRYPOINT_COMMAND_ERROR",
        driver_exit_code=1,
        message="Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):\n"
        "Traceback (most recent call last):\nValueError: loss is nan\nRunning entrypoint for job x: python\n",
    )
    world.reconcile_for(20)
    assert world.run(run).status == "failed"
    assert world.attempt(run).log_tail == "Traceback (most recent call last):\nValueError: loss is nan"
    (alert,) = world.alerts()
    assert (alert.kind, alert.level) == ("run_failed", "ALERT")
    assert alert.text == (
        "At 12 CPU-seconds: Job entrypoint command failed with exit code 1. Last words: ValueError: loss is nan."
    )
    assert alert.evidence["exit_code"] == 1


@pytest.mark.parametrize("junk", ["\x00", "\ud800"])
def test_a_log_that_is_no_text_holds_up_neither_its_run_nor_others(world: World, junk: str):
    broken, other = world.running(), world.running()
    said = "Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):\n"
    world.ray.set(f"{broken}-a1", "FAILED", driver_exit_code=1, message=f"{said}step 4{junk}0\nno{junk} memory\n")
    world.report(other, "succeeded")
    world.ray.set(f"{other}-a1", "SUCCEEDED", driver_exit_code=0)
    world.reconcile_for(20)
    assert world.attempt(broken).log_tail in ("step 40\nno memory", "step 4\ufffd0\nno\ufffd memory")
    assert "queued" in world.statuses(broken)
    assert world.run(other).status == "succeeded"


def test_what_nobody_foresaw_of_one_run_keeps_no_other_from_being_looked_after(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    odd, other = world.running(), world.running()
    for run in (odd, other):
        world.report(run, "succeeded")
        world.ray.set(f"{run}-a1", "SUCCEEDED", driver_exit_code=0)

    def applied(session: Any, run: Run, *rest: Any) -> None:
        if run.id == odd:
            raise ZeroDivisionError("who would have thought")
        apply(session, run, *rest)

    with monkeypatch.context() as patch:
        patch.setattr("worker.reconcile.apply", applied)
        world.reconcile()
    assert (world.run(odd).status, world.run(other).status) == ("running", "succeeded")
    assert f"run {odd}: cannot be looked after" in caplog.text
    assert "who would have thought" in caplog.text
    world.reconcile()
    assert world.run(odd).status == "succeeded"


def test_of_a_traceback_the_alert_says_what_went_wrong(world: World):
    run = world.running(name="no-cispo", last_compute=12.25)
    said = 'Traceback (most recent call last):\n  File "train.py", line 3\nRuntimeError: no memory.'
    world.report(run, "failed", said)
    world.ray.set(f"{run}-a1", "FAILED", driver_exit_code=1)
    world.reconcile_for(20)
    (alert,) = world.alerts()
    assert alert.text == "At 12 CPU-seconds: RuntimeError: no memory."
    assert world.run(run).reason == said


def fallen(world: World, **columns: Any) -> str:
    """A running run with an open alert: it fell below its forecast."""
    run_id = world.running(last_compute=12.25, **columns)
    with world.sessions.begin() as session:
        run = session.get_one(Run, run_id)
        open_alert(session, run, kind=BELOW_FORECAST, level="ALERT", title="It fell", text="It fell.", now=world.now)
    return run_id


def test_a_fall_below_the_forecast_is_settled_when_the_run_is_over(world: World):
    run = fallen(world)
    world.report(run, "succeeded", "budget reached")
    world.ray.set(f"{run}-a1", "SUCCEEDED", driver_exit_code=0)
    world.reconcile()
    (alert,) = world.alerts()
    assert (alert.resolved_at, alert.resolved_compute) == (world.now, 12.25)


def test_an_alert_of_a_run_whose_last_evaluations_are_not_judged_yet_waits_for_that(world: World):
    run = fallen(world, dirty_at=world.now)
    world.report(run, "succeeded", "budget reached")
    world.ray.set(f"{run}-a1", "SUCCEEDED", driver_exit_code=0)
    world.reconcile()
    assert [alert.resolved_at for alert in world.alerts()] == [None]
    refit(world.sessions, world.settings, run, world.now)
    assert [alert.resolved_at for alert in world.alerts()] == [world.now]


def test_the_log_of_a_failure_that_the_trainer_reported_is_fetched(world: World):
    run = world.running()
    world.ray.logs[f"{run}-a1"] = "step 40\nRuntimeError: out of memory\n"
    world.ray.set(f"{run}-a1", "FAILED", driver_exit_code=1, message="Job failed.")
    world.report(run, "failed", "out of memory")
    world.reconcile()
    assert world.run(run).reason == "out of memory"
    assert world.attempt(run).log_tail == "step 40\nRuntimeError: out of memory"


def test_the_trainers_success_stands_though_ray_says_failed(world: World):
    run = world.running()
    world.report(run, "succeeded")
    world.ray.set(f"{run}-a1", "FAILED", error_type="JOB_SUPERVISOR_ACTOR_DIED", message="actor died")
    world.reconcile_for(60)
    assert world.statuses(run)[-1] == "succeeded"


def test_a_silent_run_is_suspect_and_comes_back_by_its_next_heartbeat(world: World):
    run = world.running()
    world.reconcile_for(40)
    assert world.run(run).status == "suspect"
    world.beat(run)
    world.reconcile(after_s=2)
    assert world.statuses(run)[-2:] == ["suspect", "running"]


def test_our_own_outage_ends_no_run(world: World):
    """The service is down for two hours: no reconciler, no API. Then the executor is still away for a while."""
    run = world.running()
    world.reconcile()
    world.ray.blind = True
    world.wait(7200)
    world.reconcile_for(590, every_s=10)
    assert world.run(run).status in ("running", "suspect")
    world.ray.blind = False
    world.beat(run)
    world.reconcile(after_s=2)
    assert world.run(run).status == "running"


def test_while_trainers_cannot_reach_the_api_no_silence_counts(world: World):
    run = world.running()
    world.reconcile()
    world.api_is_up, world.ray.blind = False, True
    world.reconcile_for(800, every_s=10)
    assert world.run(run).status == "running"
    world.api_is_up = True
    world.reconcile_for(25, every_s=5)
    assert world.run(run).status == "running"


def test_the_time_of_our_own_health_is_kept(world: World):
    world.reconcile()
    began = world.now
    world.reconcile_for(60)
    with world.sessions() as session:
        assert session.get_one(Tick, "reconcile").healthy_since == began
    world.reconcile(after_s=600)
    with world.sessions() as session:
        assert session.get_one(Tick, "reconcile").healthy_since == world.now


def test_a_job_that_stays_pending_is_ended_and_tried_again(world: World):
    run = world.launched()
    world.reconcile_for(310, every_s=5)
    assert world.ray.stops == [f"{run}-a1"]
    assert world.statuses(run) == ["launching", "lost", "queued"]


def test_a_cluster_that_never_answers_does_not_use_up_a_run_in_silence(world: World):
    world.ray.stop()
    run = world.add_run()
    (attempt_id,) = world.admit()
    world.launch(attempt_id)
    world.reconcile()
    world.reconcile_for(310, every_s=10)
    assert world.statuses(run) == ["launching", "lost", "queued"]
    assert "could not be submitted for 300 s" in (world.run(run).reason or "")


def test_a_submission_whose_worker_died_is_adopted_by_the_reconciler(world: World):
    run = world.add_run()
    world.admit()
    world.context.executor.submit(_job(run))
    world.reconcile()
    assert world.attempt(run).external_ref == f"{run}-a1"
    assert world.ray.submissions == [f"{run}-a1"]


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_a_job_that_reported_before_its_worker_died_unrecorded_is_lost_like_any_other(world: World, is_forgotten: bool):
    run = reported_unrecorded(world)
    if is_forgotten:
        world.ray.forget()
    else:
        world.ray.set(f"{run}-a1", "FAILED", error_type="JOB_SUPERVISOR_ACTOR_DIED", message="The supervisor died.")
    world.reconcile_for(60)
    assert world.statuses(run)[-2:] == ["lost", "queued"]


def test_a_job_that_reported_before_its_worker_died_unrecorded_is_cancelled_like_any_other(world: World):
    run = reported_unrecorded(world)
    world.ask(run, "cancel")
    world.reconcile_for(6)
    assert world.ray.stops == [f"{run}-a1"]
    assert world.run(run).status == "stopped"


def test_a_run_whose_trainer_reports_is_not_said_to_be_unsubmitted(world: World):
    """Neither the answer to its submission nor the look after it reaches us; its first heartbeat does."""
    run = world.add_run()
    (attempt_id,) = world.admit()
    world.ray.hang = world.ray.blind = True
    world.ray.before_answer = lambda _: world.beat(run)
    world.launch(attempt_id)
    assert (world.run(run).status, world.run(run).reason) == ("running", None)
    world.ray.blind = False
    world.reconcile()
    attempt = world.attempt(run)
    assert (attempt.external_ref, attempt.submitted_at) == (f"{run}-a1", attempt.started_at)


def reported_unrecorded(world: World) -> str:
    """A run that trains, whose worker was killed between its submission and the commit."""
    run = world.add_run()
    world.admit()
    world.context.executor.submit(_job(run))
    world.ray.set(f"{run}-a1", "RUNNING")
    world.beat(run)
    return run


def test_an_external_run_ends_by_its_trainers_word(world: World):
    run = world.add_run(executor="external", attempt=1)
    with world.sessions.begin() as session:
        from server.runs.models import Attempt

        session.add(Attempt(run_id=run, number=1, created_at=world.now))
    world.beat(run)
    world.report(run, "succeeded")
    world.reconcile()
    assert world.statuses(run) == ["running", "succeeded"]


def test_an_external_run_that_died_is_failed_after_a_week_and_people_are_told(world: World):
    run = world.add_run(executor="external", status="running", attempt=1)
    with world.sessions.begin() as session:
        session.add(Attempt(run_id=run, number=1, created_at=world.now, last_heartbeat_at=world.now))
    world.reconcile()
    world.reconcile_for(40)
    world.wait(7 * 86_400)  # the service was away for most of it
    world.reconcile_for(590, every_s=10)
    assert world.statuses(run) == ["suspect"]
    world.reconcile_for(30, every_s=10)
    assert world.statuses(run) == ["suspect", "failed"]
    (alert,) = world.alerts()
    assert "Nothing was heard of it for 7.0 days" in alert.text


def _job(run: str):
    from worker.executors.base import JobSpec

    return JobSpec(f"{run}-a1", "python -m trainer --run", {})


def test_ingest_tokens_of_a_run_that_is_over_stay_known_for_an_hour(world: World):
    from server.access.service import authenticate
    from server.errors import Unauthenticated

    run = world.running()
    secret = world.ray.jobs[f"{run}-a1"]["runtime_env"]["env_vars"]["FORECURVE_TOKEN"]
    world.report(run, "succeeded")
    world.ray.set(f"{run}-a1", "SUCCEEDED")
    world.reconcile()
    with world.sessions() as session:
        assert session.get_one(Run, run).status == "succeeded"
        assert authenticate(session, secret, world.now + timedelta(minutes=59)).run_id == run
        with pytest.raises(Unauthenticated):
            authenticate(session, secret, world.now + timedelta(minutes=61))
