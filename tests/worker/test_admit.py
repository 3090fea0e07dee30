"""Admission: who gets the free places, and that no place is given twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import func, select, text
from sqlalchemy.exc import OperationalError

from forecurve.recipes import Recipe
from server.database import new_id
from server.recipes.models import RecipeRow
from server.runs.models import Attempt, Run
from server.runs.service import lock_run
from server.sweeps.service import stop_sweep
from tests.at_once import at_once
from tests.server.forecasts.seeds import make_sweep
from tests.worker.harness import World


def test_places_go_to_the_oldest_runs_and_to_no_more_than_may_run_at_once(world: World):
    third, first, second = (world.add_run(created_at=world.now + timedelta(seconds=s)) for s in (3, 1, 2))
    world.admit()
    assert [world.run(run).status for run in (first, second, third)] == ["launching", "launching", "queued"]
    assert world.admit() == []


def test_a_place_that_becomes_free_is_given_to_the_next(world: World):
    runs = [world.add_run() for _ in range(3)]
    world.admit()
    with world.sessions.begin() as session:
        session.get_one(Run, runs[0]).status = "failed"
    world.admit()
    assert world.run(runs[2]).status == "launching"


def test_of_runs_made_together_the_control_arm_goes_first(world: World):
    for arm in "abcdef":
        world.add_run(arm=arm)
    control = world.add_run(arm="control", is_control=True)
    world.admit()
    assert world.run(control).status == "launching"


def test_a_retry_waits_for_its_time(world: World):
    run = world.add_run(not_before=world.now + timedelta(seconds=10))
    assert world.admit() == []
    world.wait(10)
    assert len(world.admit()) == 1
    assert world.run(run).not_before is None


def test_external_runs_and_runs_that_are_to_stop_are_not_launched_and_take_no_place(world: World):
    for _ in range(3):
        world.add_run(executor="external", status="running", attempt=1)
    world.add_run(executor="external", attempt=1)
    world.add_run(desired_state="stop")
    run = world.add_run()
    world.admit()
    assert world.run(run).status == "launching"
    with world.sessions() as session:
        assert session.scalar(select(func.count()).select_from(Attempt)) == 1


def test_no_more_are_launched_than_the_cluster_is_known_to_have_room_for(world: World):
    world.settings.max_concurrent_runs, world.settings.cluster_cpus = 10, 4.0
    begun = [asking(world, cpus=1.5), asking(world, cpus=2.5)]
    waiting = [asking(world, cpus=2), asking(world, cpus=1)]
    world.admit()
    assert [world.run(run).status for run in begun + waiting] == ["launching", "launching", "queued", "queued"]
    end(world, begun[0])
    assert world.admit() == [], "1.5 are free; who asks for 2 is not passed by who asks for 1"
    end(world, begun[1])
    assert len(world.admit()) == 2


def test_a_run_that_the_cluster_has_no_room_for_is_launched_alone(world: World):
    world.settings.max_concurrent_runs, world.settings.cluster_gpus = 10, 0.0
    small, large, after = asking(world, gpus=0), asking(world, gpus=8), asking(world, gpus=0)
    world.admit()
    assert [world.run(run).status for run in (small, large, after)] == ["launching", "queued", "queued"]
    end(world, small)
    world.admit()
    assert [world.run(run).status for run in (large, after)] == ["launching", "queued"]


def asking(world: World, **resources: float) -> str:
    recipe = Recipe(resources=resources)
    with world.sessions.begin() as session:
        row = RecipeRow(name="asking", digest=f"{recipe.digest}-{new_id('rec')}", body=recipe.to_dict())
        session.add(row)
        session.flush()
        made_of = row.id
    world.wait(1)
    return world.add_run(recipe_id=made_of)


def end(world: World, run: str) -> None:
    with world.sessions.begin() as session:
        session.get_one(Run, run).status = "failed"


def test_an_admitted_run_gets_its_next_attempt_and_a_ring_for_the_launcher(world: World):
    run = world.add_run(attempt=2)
    (attempt_id,) = world.admit()
    attempt = world.attempt(run, 3)
    assert (attempt.id, attempt.created_at) == (attempt_id, world.now)
    assert ("worker.tasks.launch", [attempt_id]) in world.outbox()


def test_two_admissions_at_once_give_no_place_twice(world: World):
    for _ in range(12):
        world.add_run()
    admitted = [attempt for attempts in at_once(6, world.admit) for attempt in attempts]
    assert len(admitted) == len(set(admitted)) == 2


def test_admission_and_the_stop_of_a_sweep_do_not_wait_for_each_other_in_a_circle(world: World):
    world.settings.max_concurrent_runs = 10
    with world.sessions.begin() as session:
        sweep = make_sweep(session).id
    world.add_run(sweep_id=sweep, seed=0, is_control=True, status="running", attempt=1)
    arm = world.add_run(sweep_id=sweep, seed=0)
    control = world.add_run(sweep_id=sweep, seed=1, is_control=True)
    failed: list[OperationalError] = []

    def stop() -> None:
        with world.sessions.begin() as session:
            stop_sweep(session, sweep, actor="anna", reason=None)

    def noting(work: Callable[[], object]) -> None:
        try:
            work()
        except OperationalError as error:
            failed.append(error)

    threads = [threading.Thread(target=noting, args=(work,)) for work in (stop, world.admit)]
    with world.sessions.begin() as session:
        lock_run(session, arm)
        for waiting, thread in enumerate(threads, start=1):
            thread.start()
            until_so_many_wait(world, waiting)
    for thread in threads:
        thread.join()
    assert failed == []
    assert {world.run(run).desired_state for run in (arm, control)} == {"stop"}


def until_so_many_wait(world: World, number: int) -> None:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    for _ in range(1000):
        with world.sessions() as session:  # anew: a transaction goes on seeing the activity that it saw first
            if session.scalar(text(waiting)) == number:
                return
        time.sleep(0.01)
    raise AssertionError(f"{number} should wait by now")
