"""What jobs print comes from the cluster into the store: soon where somebody looks, and whole when the job is over."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from server.logs.schemas import LogRead
from server.logs.service import read_log
from server.runs.models import Attempt, Run
from tests.worker.fake_ray import TOKEN
from tests.worker.harness import World
from worker.executors.ray_jobs import RayJobs
from worker.read_logs import AGAIN, TRIED_FOR, UNWATCHED, find_due, read_logs


def look(world: World, run: str, **asked: int) -> LogRead:
    with world.sessions.begin() as session:
        wanted = {"after": asked.get("after"), "limit": asked.get("limit", 1000)}
        return read_log(session, run, asked.get("attempt"), now=world.now, **wanted)  # type: ignore[arg-type]


def read(world: World, after: timedelta | None = None) -> int:
    world.now += after or timedelta()
    return read_logs(world.context, world.now)


def printed(world: World, run: str, text: str, attempt: int = 1) -> None:
    reference = f"{run}-a{attempt}"
    world.ray.logs[reference] = world.ray.logs.get(reference, "") + text


def test_a_log_is_read_once_and_then_as_often_as_somebody_looks(world: World) -> None:
    run = world.running()
    printed(world, run, "step 0\nstep 1\nste")
    assert read(world) == 1
    assert read(world, timedelta(seconds=2)) == 0  # nobody looks
    seen = look(world, run)
    assert (seen.lines, seen.next, seen.whole) == (["step 0", "step 1"], 2, False)
    printed(world, run, "p 2\n")
    assert read(world, timedelta(seconds=2)) == 1
    assert look(world, run, after=2).lines == ["step 2"]
    read(world, timedelta(seconds=40))  # nobody has looked since
    assert read(world, timedelta(seconds=2)) == 0
    assert read(world, UNWATCHED) == 1


def test_a_log_that_takes_long_is_read_more_seldom(world: World, monkeypatch) -> None:
    run = world.running()
    clock = iter([0.0, 0.0, 0.0, 3.0])  # of the pass, its first look at the time, and around the read
    monkeypatch.setattr("worker.read_logs.monotonic", lambda: next(clock, 3.0))
    look(world, run)
    read(world)
    for seconds in (2, 20, 20):
        look(world, run)
        assert read(world, timedelta(seconds=seconds)) == 0
    look(world, run)
    assert read(world, timedelta(seconds=20)) == 1


def test_of_a_job_that_is_over_the_rest_is_read_and_no_more(world: World) -> None:
    run = world.running()
    printed(world, run, "step 0\n")
    read(world)
    printed(world, run, "succeeded: the budget is spent")
    world.report(run, "succeeded")
    world.reconcile(after_s=2)
    assert not look(world, run).whole  # its process may still print
    world.ray.set(f"{run}-a1", "SUCCEEDED", driver_exit_code=0)
    world.reconcile(after_s=2)
    assert world.run(run).status == "succeeded"
    assert read(world) == 1
    seen = look(world, run)
    assert (seen.lines, seen.whole) == (["step 0", "succeeded: the budget is spent"], True)
    assert read(world, timedelta(hours=1)) == 0


def test_each_attempt_has_its_log(world: World) -> None:
    run = world.running()
    printed(world, run, "first\n")
    read(world)
    world.ray.set(f"{run}-a1", "FAILED", driver_exit_code=-9, error_type="JOB_ENTRYPOINT_COMMAND_ERROR")
    world.reconcile_for(20)
    read(world)
    world.wait(60)
    (attempt_id,) = world.admit()
    world.launch(attempt_id)
    world.ray.set(f"{run}-a2", "RUNNING")
    printed(world, run, "second\n", attempt=2)
    read(world)
    assert look(world, run).lines == ["second"]
    assert look(world, run).attempt == 2
    first = look(world, run, attempt=1)
    assert (first.lines, first.whole) == (["first"], True)


def test_a_cluster_that_is_away_ends_the_pass_and_all_logs_rest(world: World) -> None:
    runs = [world.running(), world.running()]
    for run in runs:
        printed(world, run, "step 0\n")
    look(world, runs[0])
    world.ray.stop()
    # the connection that is there already has a thread of its own, which would still answer
    world.context = replace(world.context, executor=RayJobs(world.ray.url, TOKEN))
    assert read(world) == 0
    with world.sessions() as session:
        assert find_due(session, world.now) == []  # not one after another: each may take seconds to fail
    world.ray.start()
    look(world, runs[0])
    assert read(world, timedelta(seconds=10)) == 1
    assert read(world, UNWATCHED) == 2
    assert [look(world, run).lines for run in runs] == [["step 0"], ["step 0"]]


def test_a_log_that_cannot_be_had_holds_up_no_other(world: World) -> None:
    odd, other = world.running(), world.running()
    world.ray.unreadable.add(f"{odd}-a1")
    for at in range(5):
        printed(world, other, f"step {at}\n")
        look(world, odd)
        look(world, other)
        assert read(world, timedelta(seconds=2)) == 1
        assert look(world, other).next == at + 1
    world.ray.unreadable.clear()
    printed(world, odd, "step 0\n")
    assert read(world, timedelta(seconds=2)) == 2
    assert look(world, odd).lines == ["step 0"]


def test_what_a_process_prints_after_its_trainer_is_done_is_read_too(world: World) -> None:
    run = world.running()
    world.report(run, "succeeded")
    for at in range(40):
        printed(world, run, f"leaving {at}\n")
        look(world, run)
        read(world, timedelta(seconds=2))
        assert not look(world, run).whole
        assert look(world, run).next == at + 1
    world.ray.set(f"{run}-a1", "SUCCEEDED", driver_exit_code=0)
    world.reconcile_for(30)
    read(world)
    assert (look(world, run).next, look(world, run).whole) == (40, True)


def test_what_has_no_end_yet_is_kept_beside_the_lines(world: World) -> None:
    run = world.running()
    printed(world, run, "step 0\n\r 10 %|#  |\r 20 %|## |")
    read(world)
    assert (look(world, run).lines, look(world, run).unfinished) == (["step 0"], " 20 %|## |")
    printed(world, run, "\r 30 %|###|")
    read(world, timedelta(seconds=2))
    assert (look(world, run).next, look(world, run).unfinished) == (1, " 30 %|###|")
    assert look(world, run, after=0, limit=1).unfinished == " 30 %|###|"


def test_a_cluster_that_forgot_a_job_takes_nothing_of_its_log_away(world: World) -> None:
    run = world.running()
    printed(world, run, "step 0\nstep 1\n")
    read(world)
    world.ray.logs.clear()
    look(world, run)
    read(world, timedelta(seconds=2))
    assert look(world, run).lines == ["step 0", "step 1"]


def test_a_log_that_cannot_be_read_when_its_job_is_over_is_tried_for_a_day(world: World) -> None:
    run = world.running()
    world.report(run, "succeeded")
    world.ray.set(f"{run}-a1", "SUCCEEDED", driver_exit_code=0)
    world.reconcile(after_s=2)
    printed(world, run, "the end\n")
    world.ray.blind = True
    assert read(world) == 0
    assert read(world, AGAIN / 2) == 0
    with world.sessions() as session:
        assert find_due(session, world.now) == []
        assert len(find_due(session, world.now + AGAIN)) == 1
        assert find_due(session, world.now + TRIED_FOR + AGAIN) == []
    assert not look(world, run).whole
    world.now += timedelta(minutes=3)
    assert look(world, run).whole  # nobody need wait for it any more
    world.ray.blind = False
    read(world, AGAIN)
    assert look(world, run).lines == ["the end"]


def test_runs_that_were_not_launched_here_are_not_asked_for(world: World) -> None:
    run = world.add_run(executor="external", status="running", attempt=1)
    with world.sessions.begin() as session:
        session.add(Attempt(run_id=run, number=1, created_at=world.now, external_ref="theirs"))
        session.get_one(Run, run).started_at = world.now
    assert read(world) == 0


def test_a_clock_that_is_set_back_stops_no_log(world: World) -> None:
    run = world.running()
    printed(world, run, "step 0\n")
    read(world)
    world.now -= timedelta(days=1)
    look(world, run)
    assert read(world) == 1
