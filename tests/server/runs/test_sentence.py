"""The line above a run's curve, where no forecast says it."""

from __future__ import annotations

from server.runs.models import Run
from server.runs.sentence import ended_sentence, without_forecast

SUMMARY = {"A": {"median": 0.6, "lower": 0.58, "upper": 0.62}, "ceiling_known": True}


def test_of_a_traceback_the_first_line_is_said() -> None:
    run = Run(name="mine", status="failed", reason="CUDA out of memory.\nTraceback ...\n", compute_unit="GPU-hours")
    assert without_forecast(run) == "Failed before there was a forecast: CUDA out of memory."
    assert ended_sentence(run, SUMMARY).startswith("Failed: CUDA out of memory. Ceiling 0.60")


def test_of_a_traceback_alone_the_error_is_said() -> None:
    reason = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nValueError: no batch.\n'
    run = Run(name="mine", status="failed", reason=reason, compute_unit="GPU-hours")
    assert without_forecast(run) == "Failed before there was a forecast: ValueError: no batch."
