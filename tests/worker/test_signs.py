"""Signs of life: worker and scheduler touch a file each as they go round, where somebody looks for one."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from kombu.utils.imports import symbol_by_name

from server.settings import get_settings
from worker.app import app
from worker.signs import EVERY_S, WorkerSign, leave


@pytest.fixture
def signs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("FORECURVE_SIGNS_DIR", str(tmp_path))
    get_settings.cache_clear()
    yield tmp_path
    get_settings.cache_clear()


class Timer:
    """The worker's, which calls only when the test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Callable[..., None], tuple[object, ...]]] = []
        self.cancelled = False

    def call_repeatedly(self, every_s: float, call: Callable[..., None], given: tuple[object, ...]) -> Timer:
        self.calls.append((every_s, call, given))
        return self

    def cancel(self) -> None:
        self.cancelled = True


def made_old(sign: Path) -> None:
    os.utime(sign, (1, 1))


def test_a_worker_leaves_a_sign_as_it_starts_and_whenever_its_loop_calls(signs: Path):
    timer = Timer()
    parent = SimpleNamespace(timer=timer, steps=[])
    step = WorkerSign(parent)
    step.start(parent)
    sign = signs / "worker.alive"
    assert sign.exists()
    ((every_s, call, given),) = timer.calls
    assert every_s == EVERY_S
    made_old(sign)
    call(*given)
    assert sign.stat().st_mtime > 1
    step.stop(parent)
    assert timer.cancelled


def test_every_worker_has_the_step():
    assert WorkerSign in app.steps["worker"]


def test_a_scheduler_leaves_a_sign_each_time_round(signs: Path):
    kind = symbol_by_name(app.conf.beat_scheduler)

    class Ringing(kind):
        producer = None

        def apply_entry(self, entry, producer=None):
            pass

    scheduler = Ringing(app)
    scheduler.tick()
    sign = signs / "scheduler.alive"
    made_old(sign)
    scheduler.tick()
    assert sign.stat().st_mtime > 1
    assert app.conf.beat_max_loop_interval <= EVERY_S


def test_a_sign_that_cannot_be_left_is_told_and_ends_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        leave(tmp_path / "missing" / "worker.alive")
    assert "left no sign of life" in caplog.text


def test_where_nobody_looks_no_sign_is_left(signs: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORECURVE_SIGNS_DIR", "")
    get_settings.cache_clear()
    timer = Timer()
    parent = SimpleNamespace(timer=timer, steps=[])
    step = WorkerSign(parent)
    step.start(parent)
    step.stop(parent)
    assert timer.calls == []
    assert list(signs.iterdir()) == []
