"""What fits run on is compiled beside a worker that starts, and not by the first of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from forecurve.science import compiled
from tests.faults.processes import eventually
from worker import first_fit
from worker.app import app
from worker.first_fit import WarmUp


@pytest.fixture
def step() -> Iterator[WarmUp]:
    """Of a worker that is about to start its pool."""
    yield (step := WarmUp(SimpleNamespace(steps=[])))
    step.stop(None)
    compiled.twins_until(lambda: True)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where compiled loops are kept: an installation that has none yet."""
    pytest.importorskip("numba")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_loops_are_compiled_from_a_workers_start_to_its_end(kept: Path, step: WarmUp):
    step.start(None)
    assert step.process is not None
    eventually(lambda: any(kept.rglob("*.nbi")), 120, "a loop is compiled and kept")
    step.stop(None)
    eventually(lambda: not psutil.pid_exists(step.process.pid), 10, "it ends with the worker, and leaves no zombie")


@pytest.mark.parametrize("ending", ["exit 0", "exit 1", "kill -9 $$"])
def test_fits_run_on_numpy_until_it_has_ended_however(ending: str, step: WarmUp, monkeypatch, tmp_path: Path):
    pytest.importorskip("numba")
    go = tmp_path / "go"
    waits = f"until [ -e {go} ]; do sleep 0.02; done; {ending}"
    monkeypatch.setattr(first_fit, "_COMPILE", ("sh", "-c", waits))

    def loop(found): ...

    def twin(found): ...

    step.start(None)
    assert compiled.compiled(loop, twin) is twin
    go.touch()
    eventually(lambda: compiled.compiled(loop, twin) is not twin, 10, "the loop itself")


def test_every_worker_does_it():
    assert WarmUp in app.steps["worker"]
