"""Loops are compiled once and kept, and numpy does their work where numba is missing, is not ready or keeps nothing."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from forecurve.cli.given.before_fits import before_fits
from forecurve.science import compiled, fit

from .synthetic import noisy_curve


def doubled(value: float, found: np.ndarray) -> None:
    found[0] = 2.0 * value


def doubled_by_numpy(value: float, found: np.ndarray) -> None:
    found[0] = 2.0 * value


def test_fits_are_the_same_with_and_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    curve = noisy_curve(seed=4)
    for prior in ("none", "paper"):
        fast = fit(curve, prior=prior)
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "numba", None)
            compiled._compiled.cache_clear()
            slow = fit(curve, prior=prior)
        compiled._compiled.cache_clear()
        for name in ("A", "B", "C_mid", "R0"):
            a, b = getattr(fast, name), getattr(slow, name)
            assert (a.median, a.lower, a.upper) == pytest.approx((b.median, b.lower, b.upper), rel=1e-6)


def test_a_loop_whose_part_has_changed_in_another_file_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
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
        compiled.compiled(loop, loop, part)(out)
        found.append(out[0])
    assert found == [1.0, 20.0]


def test_who_waits_for_a_loop_to_be_compiled_is_told_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("numba.core.config")
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))  # where no loop is kept yet
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    before_fits()
    for factor in (2.0, 3.0):
        found = np.zeros(1)

        def loop(value: float, found: np.ndarray) -> None:
            found[0] = 2.0 * value

        compiled.compiled(loop, loop)(factor, found)
        assert found[0] == 2.0 * factor
    assert capsys.readouterr().err.count("Compiling the loops of the fit") == 1


def test_numpy_does_the_work_until_another_process_has_compiled() -> None:
    pytest.importorskip("numba")
    ready: list[bool] = []
    compiled.twins_until(lambda: bool(ready))
    assert compiled.compiled(doubled, doubled_by_numpy) is doubled_by_numpy
    ready.append(True)
    assert compiled.compiled(doubled, doubled_by_numpy) is not doubled_by_numpy
    ready.clear()
    assert compiled.compiled(doubled, doubled_by_numpy) is not doubled_by_numpy, "it is asked no more"


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
