"""Celery's configuration: the traps of a Redis broker are set aside, and every task that anybody rings exists."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import ClassVar

import pytest
from celery.beat import Scheduler
from celery.signals import worker_init
from kombu.utils.imports import symbol_by_name

from server.clocks import CLOCKS_DIFFER
from server.settings import Settings, get_settings
from worker.app import VISIBILITY_S, app, configuration, ring
from worker.context import BrokerDown
from worker.schedule import LOGS_TASK, SWEEP_TASK, TICK_TASK

ROOT = Path(__file__).parents[2]


@pytest.fixture
def conf(tmp_path: Path) -> dict:
    return configuration(
        Settings(DATABASE_URL="postgresql://unused", REDIS_URL="redis://127.0.0.1:1/0", data_dir=tmp_path, tick_s=2)
    )


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The environment that the application reads when it is first used."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("FORECURVE_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


def test_a_killed_task_is_delivered_again_and_a_running_one_is_not(conf):
    assert (conf["task_acks_late"], conf["task_reject_on_worker_lost"]) == (True, True)
    assert conf["worker_prefetch_multiplier"] == 1
    assert conf["task_soft_time_limit"] < conf["task_time_limit"] < VISIBILITY_S / 2


def test_the_visibility_timeout_is_set_in_all_three_places(conf):
    assert conf["visibility_timeout"] == VISIBILITY_S
    assert conf["broker_transport_options"]["visibility_timeout"] == VISIBILITY_S
    assert conf["result_backend_transport_options"]["visibility_timeout"] == VISIBILITY_S


def test_a_lease_outlives_no_task_by_much_and_no_task_outlives_its_lease(conf):
    assert Settings(DATABASE_URL="postgresql://unused").lease_s >= conf["task_time_limit"]


def test_ticks_of_an_idle_queue_expire(conf):
    for entry in conf["beat_schedule"].values():
        every_s = entry["schedule"].run_every.total_seconds()
        assert every_s <= entry["options"]["expires"] <= 5 * every_s + CLOCKS_DIFFER.total_seconds()


def test_a_worker_whose_clock_is_ahead_hears_the_scheduler(conf):
    """It compares its own clock with when the message expires by the scheduler's."""
    for entry in conf["beat_schedule"].values():
        assert entry["options"]["expires"] > CLOCKS_DIFFER.total_seconds()


def test_each_queue_gets_its_own_messages_only(conf):
    ways = {(queue.exchange.name, queue.routing_key) for queue in conf["task_queues"]}
    assert ways == {("control", "control"), ("work", "work")}


@pytest.fixture
def scheduler(surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    """As the scheduler's process makes it, but what it rings goes to its `rung`."""
    kind = symbol_by_name(app.conf.beat_scheduler)

    class Noting(kind):
        producer = None
        rung: ClassVar[list[str]] = []

        def apply_entry(self, entry, producer=None):
            self.rung.append(entry.name)

    monkeypatch.chdir(tmp_path)
    return Noting(app, schedule_filename=str(tmp_path / "beat"))


def what_rings(scheduler: Scheduler) -> set[str]:
    scheduler.rung.clear()
    while scheduler.tick() == 0:
        pass
    return set(scheduler.rung)


def test_the_scheduler_keeps_nothing_on_disk(scheduler: Scheduler, tmp_path: Path):
    """What a full disk or a lost machine cut short there kept it from ever starting again."""
    what_rings(scheduler)
    scheduler.sync()
    assert list(tmp_path.iterdir()) == []


def test_a_clock_set_back_does_not_silence_the_scheduler(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch):
    what_rings(scheduler)
    monkeypatch.setattr(type(app), "now", lambda _: datetime.now(UTC) - timedelta(hours=1))
    monkeypatch.setattr("worker.schedule.monotonic", lambda: monotonic() + 2)
    assert what_rings(scheduler) == {"tick", "read-logs"}
    monkeypatch.setattr("worker.schedule.monotonic", lambda: monotonic() + 10)
    assert what_rings(scheduler) == {"tick", "read-logs", "sweep-up"}


def test_every_task_that_is_rung_anywhere_is_registered(surroundings):
    import worker.tasks  # noqa: F401

    rung = {TICK_TASK, SWEEP_TASK, LOGS_TASK}
    for room in ("server", "worker"):
        for source in (ROOT / room).rglob("*.py"):
            rung |= set(re.findall(r'"(worker\.tasks\.\w+)"', source.read_text()))
    assert len(rung) >= 6
    assert rung <= set(app.tasks)


def test_a_broker_that_is_down_is_said_to_be(surroundings):
    with pytest.raises(BrokerDown):
        ring("worker.tasks.tick")


def test_a_worker_that_can_do_no_task_does_not_start(surroundings, monkeypatch: pytest.MonkeyPatch):
    import worker.ringer  # noqa: F401
    from worker.tasks import _context_of

    _context_of.cache_clear()
    monkeypatch.setenv("FORECURVE_RAY_URL", "http://ray-head.example.org:8265")
    with pytest.raises(SystemExit, match="set FORECURVE_RAY_TOKEN"):
        worker_init.send(sender=None)


@pytest.mark.parametrize(
    ("name", "level", "told", "kept"),
    [
        ("celery.worker.strategy", logging.INFO, ({"id": "1", "name": TICK_TASK},), False),
        ("celery.app.trace", logging.INFO, ({"id": "1", "name": SWEEP_TASK},), False),
        ("celery.app.trace", logging.ERROR, ({"id": "1", "name": TICK_TASK},), True),
        ("celery.app.trace", logging.INFO, ({"id": "1", "name": "worker.tasks.refit"},), True),
        ("celery.beat", logging.INFO, ("tick", TICK_TASK), False),
        ("celery.beat", logging.INFO, (), True),
    ],
)
def test_what_comes_every_two_seconds_is_told_of_only_when_it_goes_wrong(
    name: str, level: int, told: tuple[object, ...], kept: bool
):
    record = logging.LogRecord(name, level, __file__, 1, "told", told, None)
    assert bool(logging.getLogger(name).filter(record)) is kept
