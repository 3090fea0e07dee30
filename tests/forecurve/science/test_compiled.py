"""Loops are compiled once and kept, and numpy does their work where numba is missing, is not ready or keeps nothing."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from forecurve.cli.given.before_fits import before_fits
from forecurve.science import compiled, fit

from .synthetic import noisy_curve


@pytest.fixture(autouse=True)
def turn(monkeypatch: pytest.MonkeyPatch) -> compiled._Turn:
    """As in a process that has just begun."""
    monkeypatch.setattr(compiled, "_turn", turn := compiled._Turn())
    return turn


@pytest.fixture
def none_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where compiled loops are to be kept, of an installation that has none yet."""
    pytest.importorskip("numba.core.config")
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    return tmp_path


def a_loop() -> Callable[[np.ndarray], None]:
    """Another one each time: of a process that has not seen it."""

    def loop(found: np.ndarray) -> None:
        found[0] += 1.0

    return loop


def twin(found: np.ndarray) -> None:
    """Another sum than that of the loop, so that it is seen which one worked."""
    found[0] += 100.0


def work(loop: Callable[[np.ndarray], None]) -> float:
    found = np.zeros(1)
    compiled.compiled(loop, twin)(found)
    return float(found[0])


def test_fits_are_the_same_with_and_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled.compile_at_once()
    curve = noisy_curve(seed=4)
    for prior in ("none", "paper"):
        fast = fit(curve, prior=prior)
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "numba", None)
            compiled._compiled.cache_clear()
            slow = fit(curve, prior=prior)
            assert compiled.compiled(work, twin) is twin
        compiled._compiled.cache_clear()
        for name in ("A", "B", "C_mid", "R0"):
            a, b = getattr(fast, name), getattr(slow, name)
            assert (a.median, a.lower, a.upper) == pytest.approx((b.median, b.lower, b.upper), rel=1e-6)


def test_a_loop_whose_part_has_changed_in_another_file_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    compiled.compile_at_once()
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_loop.py").write_text("from a_part import part\n\ndef loop(out):\n    out[0] = part(out[0])\n")
    found = []
    for change in (1, 20):
        (tmp_path / "a_part.py").write_text(f"def part(x):\n    return x + {change}.0\n")
        for name in ("a_part", "a_loop"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        loop, part = importlib.import_module("a_loop").loop, importlib.import_module("a_part").part
        out = np.zeros(1)
        compiled.compiled(loop, twin, part)(out)
        found.append(out[0])
    assert found == [1.0, 20.0]


@pytest.mark.usefixtures("none_kept")
def test_who_waits_for_a_loop_to_be_compiled_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    before_fits()
    compiled.compile_at_once()
    assert [work(a_loop()), work(a_loop())] == [1.0, 1.0]
    assert capsys.readouterr().err.count("Compiling the loops of the fit") == 1


def test_numpy_works_for_what_is_not_kept_for_as_long_as_compiling_takes(none_kept: Path, turn: compiled._Turn) -> None:
    loop = a_loop()
    assert work(loop) == 100.0
    assert 0 < compiled.seconds_of_numpy() < 1
    assert not list(none_kept.rglob("*.nbi"))
    turn.numpy_s = compiled.PATIENCE_S - 1e-9
    assert [work(loop), work(loop)] == [100.0, 1.0]
    assert list(none_kept.rglob("*.nbi"))


@pytest.mark.usefixtures("none_kept")
def test_what_is_kept_is_taken_at_once(turn: compiled._Turn) -> None:
    compiled.compile_at_once()
    work(a_loop())
    turn.patience_s = compiled.PATIENCE_S
    assert work(a_loop()) == 1.0
    assert compiled.seconds_of_numpy() == 0.0


def test_numpy_does_the_work_where_numba_is_told_not_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba.core.config")
    monkeypatch.setattr("numba.core.config.DISABLE_JIT", 1)
    compiled.compile_at_once()
    assert work(a_loop()) == 100.0


@pytest.mark.usefixtures("none_kept")
def test_numpy_does_the_work_until_another_process_has_compiled() -> None:
    compiled.compile_at_once()
    ready: list[bool] = []
    compiled.twins_until(lambda: bool(ready))
    assert work(a_loop()) == 100.0
    assert compiled.seconds_of_numpy() == 0.0, "it does not wait in vain"
    ready.append(True)
    assert work(a_loop()) == 1.0
    ready.clear()
    assert work(a_loop()) == 1.0, "it is asked no more"


def test_where_nothing_compiled_can_be_kept_numpy_does_the_work_and_it_is_said_once(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    table = tmp_path / "curves.csv"
    rows = [f"run,{compute},{0.2 + 0.6 / (1 + 20 / compute)}" for compute in range(5, 60, 5)]
    table.write_text("\n".join(["series,compute,reward", *rows]))
    nowhere = {"NUMBA_CACHE_DIR": "/proc/none", "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    command = [sys.executable, "-m", "forecurve", "fit", str(table)]
    done = subprocess.run(command, env=os.environ | nowhere, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("set NUMBA_CACHE_DIR to a folder that it may write to") == 1
