"""Reconcilers that look at once, or are overtaken, on real Postgres against a fake Jobs API."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from server.events.models import Event
from tests.at_once import at_once
from tests.worker.harness import World
from worker.reconcile import reconcile, reconcile_run


def test_two_reconcilers_at_once_end_a_run_once(world: World):
    runs = [world.running(), world.running()]
    for run in runs:
        world.ray.set(f"{run}-a1", "SUCCEEDED")
        world.report(run, "failed", "diverged")
    at_once(4, world.reconcile)
    for run in runs:
        assert world.statuses(run) == ["launching", "running", "failed"]
    assert len(world.alerts()) == 2


def test_a_pass_that_finds_nothing_new_writes_nothing(world: World):
    run = world.running()
    world.reconcile()
    before = world.run(run).version, _events(world)
    world.reconcile(after_s=2)
    assert (world.run(run).version, _events(world)) == before


def test_a_run_that_was_changed_while_it_was_looked_at_is_decided_on_anew(world: World):
    """The trainer reports its outcome between the reconciler's look and its writing."""
    run = world.running()
    world.reconcile()
    world.reconcile_for(28)
    world.wait(4)
    look = world.context.executor.observe

    def observe_and_be_overtaken(references):
        seen = look(references)
        world.report(run, "succeeded")
        return seen

    world.context.executor.observe = observe_and_be_overtaken  # type: ignore[method-assign]
    world.reconcile()
    assert "suspect" not in world.statuses(run)


@pytest.mark.parametrize("took_s", [4, 40])
def test_a_trainer_that_is_heard_during_a_look_that_takes_long_is_not_silent(world: World, took_s: int):
    run = world.running()
    world.reconcile()
    world.reconcile_for(28)
    world.wait(4)  # it has been silent for long enough
    look = world.context.executor.observe

    def observe_slowly(references):
        seen = look(references)
        world.wait(took_s)
        world.beat(run)
        return seen

    world.context.executor.observe = observe_slowly  # type: ignore[method-assign]
    reconcile(world.context, world.now)
    assert world.statuses(run) == ["launching", "running"]


def test_a_look_from_before_the_submission_says_nothing_of_the_job(world: World):
    """The reconciler looks, then the job is submitted, then it decides: "no such job" is old news by then."""
    world.settings.launch_deadline_s = 20
    run = world.add_run()
    (attempt_id,) = world.admit()
    world.reconcile()
    world.reconcile_for(20, every_s=10)
    world.wait(5)
    look = world.context.executor.observe

    def observe_and_be_overtaken(references):
        seen = look(references)
        world.launch(attempt_id)
        return seen

    world.context.executor.observe = observe_and_be_overtaken  # type: ignore[method-assign]
    reconcile_run(world.context, run, world.now)
    attempt = world.attempt(run)
    assert (attempt.external_ref, attempt.observed, attempt.ended_at) == (f"{run}-a1", "pending", None)
    assert world.statuses(run) == ["launching"]


def _events(world: World) -> int:
    with world.sessions() as session:
        return session.scalar(select(func.count()).select_from(Event)) or 0
