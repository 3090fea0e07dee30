"""A clock that is set back holds nothing up for longer than what it was put off anyhow; one that differs a little
takes nothing out of another worker's hands."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from server.alerts.models import Delivery
from server.alerts.service import open_alert
from server.events.models import OutboxMessage
from server.forecasts.models import Forecast
from server.runs.models import Attempt, Run
from server.sweeps.comparisons import ask_for_comparison
from server.sweeps.models import SweepComparison
from tests.server.forecasts.seeds import add_evaluations, make_channel, make_run, make_sweep
from tests.worker.harness import World
from tests.worker.refitting import COMPUTE, HEALTHY
from worker.compare import compare_sweep
from worker.notify import deliver
from worker.refit import refit

JUMPS = [(5, False), (3600, True)]
"""Seconds that this worker's clock is behind the one that wrote, and whether that is a clock that was set back."""


@pytest.mark.parametrize(("back_s", "free"), JUMPS)
def test_a_launch_whose_worker_died_is_taken_up(world: World, back_s: float, free: bool) -> None:
    run_id = world.add_run()
    (attempt_id,) = world.admit()
    claimed(world, Attempt, attempt_id)
    world.wait(-back_s)
    world.launch(attempt_id)
    assert (world.attempt(run_id).external_ref is not None) is free


@pytest.mark.parametrize(("back_s", "free"), JUMPS)
def test_a_run_is_not_thought_to_be_in_submission_for_ever(world: World, back_s: float, free: bool) -> None:
    run_id = world.add_run()
    (attempt_id,) = world.admit()
    claimed(world, Attempt, attempt_id)
    world.ask(run_id, "stop")
    world.wait(-back_s)
    world.reconcile()
    assert (world.run(run_id).status == "stopped") is free


@pytest.mark.parametrize(("back_s", "free"), JUMPS)
def test_a_refit_whose_worker_died_is_taken_up(world: World, back_s: float, free: bool) -> None:
    run_id = world.add_run(dirty_at=world.now)
    with world.sessions.begin() as session:
        run = session.get_one(Run, run_id)
        add_evaluations(session, run, COMPUTE[:12], HEALTHY[:12])
        run.fit_lease, run.fit_lease_expires_at = "another", world.now + timedelta(minutes=5)  # it took too long
    world.wait(-back_s)
    assert (world.sweep_up() == 1) is free
    refit(world.sessions, world.settings, run_id, world.now)
    with world.sessions() as session:
        assert (session.scalar(select(Forecast.id)) is not None) is free


@pytest.mark.parametrize(("back_s", "free"), JUMPS)
def test_a_comparison_whose_worker_died_is_taken_up(world: World, back_s: float, free: bool) -> None:
    sweep_id = asked(world)
    with world.sessions.begin() as session:
        row = session.get_one(SweepComparison, sweep_id)
        row.lease, row.lease_expires_at = "another", world.now + timedelta(seconds=world.settings.lease_s)
    assert_compared(world, sweep_id, back_s, free)


@pytest.mark.parametrize(("back_s", "free"), JUMPS)
def test_a_comparison_does_not_rest_for_the_whole_jump(world: World, back_s: float, free: bool) -> None:
    sweep_id = asked(world)
    with world.sessions.begin() as session:
        row = session.get_one(SweepComparison, sweep_id)
        row.compared_at, row.not_before = world.now, world.now + timedelta(seconds=20)
    assert_compared(world, sweep_id, back_s, free)


@pytest.mark.parametrize(("back_s", "free"), JUMPS)
def test_an_alert_is_sent(world: World, back_s: float, free: bool) -> None:
    delivery_id = pending(world)
    world.wait(-back_s)
    assert (world.sweep_up() == 1) is free
    assert (tries_of(world, delivery_id) == 1) is free


@pytest.mark.parametrize(("back_s", "free"), JUMPS)
def test_an_alert_that_was_tried_is_tried_again(world: World, back_s: float, free: bool) -> None:
    delivery_id = pending(world)
    assert tries_of(world, delivery_id) == 1
    world.wait(-back_s)
    assert (world.sweep_up() == 1) is free
    assert (tries_of(world, delivery_id) == 2) is free
    assert tries_of(world, delivery_id) == 1 + free, "from then on it waits as long as ever"
    world.wait(60)
    assert tries_of(world, delivery_id) == 2 + free


def test_a_clock_that_jumps_ahead_costs_an_alert_one_try_at_most(world: World) -> None:
    delivery_id = pending(world)
    for jump_s in (1, 86_400, -86_400):
        world.wait(jump_s)
        tries = [tries_of(world, delivery_id), tries_of(world, delivery_id)]
        assert tries[0] == tries[1], f"after a jump of {jump_s} s"
    assert tries == [3, 3]


@pytest.mark.parametrize(("back_s", "free"), JUMPS)
def test_an_alert_whose_worker_died_is_sent(world: World, back_s: float, free: bool) -> None:
    delivery_id = pending(world)
    claimed(world, Delivery, delivery_id)
    with world.sessions.begin() as session:
        session.get_one(Delivery, delivery_id).not_before = world.now - timedelta(days=1)
    world.wait(-back_s)
    assert (tries_of(world, delivery_id) == 1) is free


@pytest.mark.parametrize(("back_s", "free"), [(5, False), (3600, True)])
def test_a_retry_does_not_wait_for_the_whole_jump(world: World, back_s: float, free: bool) -> None:
    world.add_run(not_before=world.now + timedelta(minutes=5))
    world.wait(-back_s)
    assert (len(world.admit()) == 1) is free


@pytest.mark.parametrize("submitted", [True, False])
def test_a_job_that_is_not_heard_of_is_given_its_deadline_anew_and_no_more(world: World, submitted: bool) -> None:
    run_id = world.launched() if submitted else world.add_run()
    if not submitted:
        world.admit()
    world.reconcile()
    world.wait(-7200)
    world.reconcile_for(290, every_s=5)
    assert world.statuses(run_id) == ["launching"]
    world.reconcile_for(20, every_s=5)
    assert world.statuses(run_id) == ["launching", "lost", "queued"]


def test_a_run_that_is_silent_is_found_so(world: World) -> None:
    run_id = world.running()
    world.reconcile()
    world.wait(-7200)
    world.reconcile_for(25, every_s=5)
    assert world.run(run_id).status == "running"
    world.reconcile_for(60, every_s=5)
    assert world.statuses(run_id) == ["launching", "running", "suspect"], "and not by turns"


def test_a_stop_that_is_ignored_is_forced(world: World) -> None:
    run_id = world.running()
    world.ask(run_id, "stop")
    world.reconcile()
    world.wait(-7200)
    world.reconcile_for(20, every_s=5)
    assert world.ray.stops == []
    world.reconcile_for(20, every_s=5)
    assert world.ray.stops == [f"{run_id}-a1"]


def test_what_ended_while_the_service_was_away_is_not_held_against_its_run(world: World) -> None:
    run_id = world.running()
    world.reconcile()
    world.wait(-7200)
    world.ray.forget()
    world.reconcile_for(60, every_s=5)
    assert (world.run(run_id).status, world.run(run_id).excused_attempts) == ("queued", 1)


@pytest.mark.parametrize("jump_s", [7200, -7200])
def test_no_run_is_ended_by_a_jump_of_the_clock(world: World, jump_s: float) -> None:
    run_id, waits = world.running(), world.launched()
    world.reconcile()
    world.wait(jump_s)
    world.reconcile()
    assert (world.run(run_id).status, world.run(waits).status) == ("running", "launching")
    assert world.ray.stops == []


def test_what_was_asked_for_is_published_once(world: World) -> None:
    with world.sessions.begin() as session:
        written(session, "at once", world.now)
        written(session, "later", world.now, not_before=world.now + timedelta(hours=2))
    world.wait(-3600)
    with world.sessions.begin() as session:
        written(session, "not yet", world.now, not_before=world.now + timedelta(hours=2))
    world.bell.down = True
    assert world.dispatch() == 0
    world.bell.down = False
    assert world.dispatch() == 0, "they are tried again when the broker may be back"
    world.wait(2)
    assert world.dispatch() == 2
    assert [args for _, args in world.bell.take()] == [("at once",), ("later",)]
    assert world.dispatch() == 0
    world.wait(7200)
    assert world.dispatch() == 1


def test_what_another_machine_has_just_written_waits_for_the_difference_alone(world: World) -> None:
    with world.sessions.begin() as session:
        written(session, "ahead", world.now + timedelta(seconds=5))
    assert world.dispatch() == 0
    world.wait(5)
    assert world.dispatch() == 1


def claimed(world: World, kind: type[Attempt] | type[Delivery], row_id: str) -> None:
    """Another worker claims it, and dies."""
    with world.sessions.begin() as session:
        row = session.get_one(kind, row_id)
        row.lease, row.lease_expires_at = "another", world.now + timedelta(seconds=world.settings.lease_s)


def asked(world: World) -> str:
    """A sweep of which a comparison is wanted."""
    with world.sessions.begin() as session:
        sweep = make_sweep(session)
        make_run(session, sweep_id=sweep.id)
        ask_for_comparison(session, sweep.id, world.now)
        return sweep.id


def assert_compared(world: World, sweep_id: str, back_s: float, compared: bool) -> None:
    world.wait(-back_s)
    assert (world.sweep_up() == 1) is compared
    compare_sweep(world.sessions, world.settings, sweep_id, world.now)
    with world.sessions() as session:
        assert (session.get_one(SweepComparison, sweep_id).note is not None) is compared


def pending(world: World) -> str:
    """A delivery that is due now, of an alert to a channel where nobody answers."""
    run_id = world.add_run()
    with world.sessions.begin() as session:
        make_channel(session, "http://127.0.0.1:9/")
        run = session.get_one(Run, run_id)
        open_alert(session, run, kind="run_failed", level="ALERT", title="t", text="t", now=world.now)
        return session.scalars(select(Delivery.id)).one()


def tries_of(world: World, delivery_id: str) -> int:
    """How often it was tried, after one more attempt at it."""
    settings = world.settings.model_copy(update={"allow_private_webhooks": True})
    deliver(world.sessions, settings, delivery_id, world.now)
    with world.sessions() as session:
        return session.get_one(Delivery, delivery_id).tries


def written(session: Session, name: str, now: datetime, not_before: datetime | None = None) -> None:
    """A message as it is written at `now`."""
    session.add(OutboxMessage(task="t", args=[name], created_at=now, not_before=not_before or now))
