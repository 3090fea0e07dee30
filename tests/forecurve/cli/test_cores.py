"""Commands that forecast: linear algebra on one core, decided before numpy loads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

WATCHED = """
import os, sys
told = []
def hear(event, arguments):
    if event == "import" and arguments[0] == "numpy":
        told.append(os.environ.get("OPENBLAS_NUM_THREADS"))
sys.addaudithook(hear)
from forecurve.cli import main
main(sys.argv[1:])
print(told[0])
"""


@pytest.mark.parametrize(
    ("asked_for", "command", "told"),
    [
        ({}, ["fit", "gone.csv"], "1"),
        *(
            pytest.param({}, command, "1", marks=pytest.mark.slow)
            for command in (
                ["backtest", "gone.csv", "--baselines", "last-value"],
                ["compare", "gone.csv", "--control", "a"],
                ["plan", "gone.csv", "--budget", "1"],
            )
        ),
        ({"OPENBLAS_NUM_THREADS": "3"}, ["fit", "gone.csv"], "3"),
    ],
)
def test_numpy_loads_with_one_thread_unless_more_are_asked_for(
    asked_for: dict[str, str], command: list[str], told: str
) -> None:
    rest = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    arguments = [sys.executable, "-c", WATCHED, *command]
    ended = subprocess.run(arguments, env=rest | asked_for, capture_output=True, text=True, timeout=120)
    assert ended.stdout.strip() == told, ended.stderr
