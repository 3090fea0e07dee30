"""Every benchmark that the docs name can be started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
_IMPORT_ALL = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"


def test_benchmarks_find_what_they_import() -> None:
    pytest.importorskip("optuna")
    names = sorted(file.stem for file in FOLDER.glob("*.py"))

    found = subprocess.run([sys.executable, "-c", _IMPORT_ALL, *names], cwd=FOLDER, capture_output=True, text=True)

    assert found.returncode == 0, found.stderr
