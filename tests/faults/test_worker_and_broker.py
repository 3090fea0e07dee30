"""Workers killed, messages delivered twice, a broker emptied and taken away: nothing is lost, nothing done twice.

Real Celery processes, a real Redis, real Postgres; Ray is the fake, so that submissions can be counted.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from sqlalchemy import func, select, text, update

from server.alerts.models import Channel, Delivery
from server.alerts.service import open_alert
from server.events.models import Event
from server.events.outbox import enqueue
from server.forecasts.models import Forecast
from server.metrics.models import Evaluation
from server.runs.models import Run
from tests.faults.processes import Processes, eventually
from tests.worker.harness import World
from tests.worker.receiver import Receiver, receiving

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(autouse=True)
def real_time(world: World) -> None:
    """The processes live in real time, so the runs must have been made in it."""
    world.now = datetime.now(UTC)


def is_submitted(world: World, run: str) -> bool:
    return world.run(run).attempt == 1 and world.attempt(run).external_ref is not None


def test_a_worker_killed_between_submission_and_commit_costs_no_second_submission(processes: Processes):
    world = processes.world
    run = world.add_run()
    first = processes.worker(lease_s=4)

    def kill_first(_: str) -> None:
        world.ray.before_answer = None
        processes.kill(first)

    world.ray.before_answer = kill_first
    scheduler = processes.scheduler()
    eventually(lambda: first.poll() is not None, 120, "the first worker was killed during its submission", processes)
    assert world.attempt(run).external_ref is None, "its submission was never recorded"
    processes.worker()
    eventually(lambda: is_submitted(world, run), 120, "the second worker found the job", processes)
    assert scheduler.poll() is None
    assert world.ray.submissions == [f"{run}-a1"]
    assert world.statuses(run) == ["launching"]


def test_a_broker_that_is_emptied_again_and_again_costs_no_run(processes: Processes):
    world = processes.world
    world.settings.max_concurrent_runs = 6
    processes.worker(concurrency=2)
    processes.scheduler()
    runs = []
    for _ in range(6):
        runs.append(world.add_run())
        processes.redis.empty()
    eventually(lambda: world.run(runs[0]).status == "launching", 120, "the sweep has begun", processes)
    processes.redis.empty()
    eventually(lambda: all(is_submitted(world, run) for run in runs), 120, "every run was launched", processes)
    processes.redis.empty()
    assert sorted(world.ray.submissions) == sorted(f"{run}-a1" for run in runs)


@pytest.mark.slow
def test_a_broker_that_was_away_is_listened_to_again(processes: Processes, record_property):
    world = processes.world
    processes.worker()
    processes.scheduler()
    before = world.add_run()
    eventually(lambda: is_submitted(world, before), 120, "the chain works", processes)
    processes.redis.stop()
    during = world.add_run()
    world.admit()
    eventually(lambda: len(world.outbox()) > 0, 10, "the outbox keeps what the broker cannot take", processes)
    assert not is_submitted(world, during)
    processes.redis.start()
    waited = eventually(lambda: is_submitted(world, during), 120, "the worker consumes again", processes)
    record_property("seconds_until_the_worker_consumed_again", waited)
    assert world.ray.submissions == [f"{before}-a1", f"{during}-a1"]


def test_without_a_scheduler_what_was_committed_is_done_within_a_second_or_so(processes: Processes, record_property):
    """The worker's own ringer publishes the outbox; the scheduler is only the second chance."""
    world = processes.world
    processes.worker()
    first = world.add_run()
    world.admit()
    eventually(lambda: is_submitted(world, first), 120, "the worker is up", processes)
    second = world.add_run()
    world.admit()
    waited = eventually(lambda: is_submitted(world, second), 10, "the second run was launched", processes)
    record_property("seconds_from_commit_to_submission", waited)


def test_a_worker_killed_in_the_middle_of_a_refit_leaves_it_to_another(processes: Processes):
    world = processes.world
    run = world.add_run(status="succeeded", attempt=1, budget_compute=60.0, dirty_at=world.now)
    _evaluations_of(world, run)
    first = processes.worker(lease_s=4)
    with world.sessions() as session:
        session.execute(text("LOCK TABLE forecasts IN EXCLUSIVE MODE"))  # it is read, and what a refit writes waits
        with world.sessions.begin() as other:
            enqueue(other, "worker.tasks.refit", run, not_before=world.now)
        eventually(lambda: world.run(run).fit_lease is not None, 120, "the refit has begun", processes)
        processes.kill(first)
    assert world.run(run).forecast_id is None
    processes.worker()
    processes.worker()  # two at once: one of them takes it up
    processes.scheduler()
    eventually(lambda: world.run(run).forecast_id is not None, 120, "it was refitted by another", processes)
    assert (world.run(run).dirty_at, world.run(run).fit_lease) == (None, None)
    with world.sessions() as session:
        newest = Forecast.run_id == run, Forecast.at_compute == 55.0
        assert session.scalar(select(func.count()).where(*newest)) == 1


def test_a_fit_waits_for_no_compiler_and_compiles_nothing(processes: Processes, tmp_path: Path):
    pytest.importorskip("numba")
    world, kept = processes.world, tmp_path / "kept"
    run = world.add_run(status="succeeded", attempt=1, budget_compute=60.0, dirty_at=world.now)
    _evaluations_of(world, run)
    worker = psutil.Process(processes.worker(NUMBA_CACHE_DIR=str(kept)).pid)  # of an installation that has none yet
    eventually(lambda: _compiler_of(worker) is not None, 60, "it compiles", processes)
    _compiler_of(worker).suspend()
    with world.sessions.begin() as session:
        enqueue(session, "worker.tasks.refit", run, not_before=world.now)
    eventually(lambda: world.run(run).forecast_id is not None, 120, "it was fitted", processes)
    assert not list(kept.rglob("*.nbi"))


def _compiler_of(worker: psutil.Process) -> psutil.Process | None:
    children = worker.children()
    return next((child for child in children if "forecurve.science.warm_up" in str(child.cmdline())), None)


def test_every_task_may_be_delivered_any_number_of_times(processes: Processes):
    with receiving() as receiver:
        _deliver_everything_thrice(processes, receiver)


def _deliver_everything_thrice(processes: Processes, receiver: Receiver) -> None:
    world, times = processes.world, 3
    launched = world.add_run()
    (attempt_id,) = world.admit()
    ended = world.running()
    world.report(ended, "failed", "diverged")
    world.ray.set(f"{ended}-a1", "FAILED", driver_exit_code=1)
    fitted = world.add_run(status="succeeded", attempt=1, budget_compute=60.0, dirty_at=world.now)
    delivery_id = _delivery_to(world, receiver, fitted)
    _evaluations_of(world, fitted)
    with world.sessions.begin() as session:
        for _ in range(times):
            for task, *ids in (
                ("launch", attempt_id),
                ("reconcile_run", ended),
                ("refit", fitted),
                ("deliver", delivery_id),
                ("admit",),
                ("tick",),
                ("sweep_up",),
            ):
                enqueue(session, f"worker.tasks.{task}", *ids, not_before=world.now)
    processes.worker(concurrency=3)
    eventually(lambda: is_submitted(world, launched), 120, "launched", processes)
    eventually(lambda: world.run(fitted).forecast_id is not None, 120, "refitted", processes)
    eventually(lambda: len(receiver.got) > 0, 120, "delivered", processes)
    eventually(lambda: world.run(ended).status == "failed", 120, "ended", processes)
    eventually(lambda: _is_idle(processes), 120, "every message was consumed", processes)
    assert world.ray.submissions.count(f"{launched}-a1") == 1
    assert len(receiver.got) == 1
    assert world.statuses(ended) == ["launching", "running", "failed"]
    with world.sessions() as session:
        newest = Forecast.run_id == fitted, Forecast.at_compute == 55.0  # besides the one that was frozen earlier
        assert session.scalar(select(func.count()).where(*newest)) == 1
        alerts = select(func.count()).where(Event.kind == "alert", Event.run_id == ended)
        assert session.scalar(alerts) == 1


def _delivery_to(world: World, receiver: Receiver, run_id: str) -> str:
    with world.sessions.begin() as session:
        session.add(
            Channel(name="ops", kind="webhook", url=receiver.url, secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        )
        session.flush()
        run = session.get_one(Run, run_id)
        open_alert(session, run, kind="below_forecast", level="ALERT", title="t", text="t", now=world.now)
        session.execute(update(Channel).values(enabled=False))  # other alerts are not to come here
        return session.scalars(select(Delivery.id)).one()


def _evaluations_of(world: World, run_id: str) -> None:
    """Twelve points of a clean sigmoid."""
    with world.sessions.begin() as session:
        for step in range(12):
            compute = 5.0 * step
            reward = 0.2 + (0.6 / (1 + (20 / compute) ** 2) if compute else 0.0)
            point = {"step": step, "compute": compute, "reward": reward, "prompts": 256, "samples": 4}
            session.add(Evaluation(run_id=run_id, attempt=1, time=world.now, **point))


def _is_idle(processes: Processes) -> bool:
    client = processes.redis.client
    waiting = sum(int(client.llen(queue)) for queue in ("control", "work"))
    return waiting == 0 and int(client.hlen("unacked")) == 0 and not processes.world.outbox()
