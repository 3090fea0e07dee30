"""What fits run on is compiled beside a worker that starts, and not by the first of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from tests.faults.processes import eventually
from worker.app import app
from worker.first_fit import WarmUp


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where compiled loops are kept: an installation that has none yet."""
    pytest.importorskip("numba")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_loops_are_compiled_from_a_workers_start_to_its_end(kept: Path):
    parent = SimpleNamespace(steps=[])
    step = WarmUp(parent)
    step.start(parent)
    assert step.process is not None
    eventually(lambda: any(kept.rglob("*.nbi")), 120, "a loop is compiled and kept")
    assert psutil.Process(step.process.pid).nice() == 10
    step.stop(parent)
    eventually(lambda: not psutil.pid_exists(step.process.pid), 10, "it ends with the worker, and leaves no zombie")


def test_every_worker_does_it():
    assert WarmUp in app.steps["worker"]
