"""The line above a run's curve, where no forecast says it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from server.runs.models import Run
from server.runs.sentence import ended_sentence, without_forecast

SUMMARY = {"A": {"median": 0.6, "lower": 0.58, "upper": 0.62}, "ceiling_known": True}


def test_of_a_traceback_the_first_line_is_said() -> None:
    run = Run(name="mine", status="failed", reason="CUDA out of memory.\nTraceback ...\n", compute_unit="GPU-hours")
    assert without_forecast(run) == "Failed: CUDA out of memory. No forecast was made."
    assert ended_sentence(run, SUMMARY).startswith("Failed: CUDA out of memory. Ceiling 0.60")


def test_a_run_that_ended_without_a_forecast_says_why_there_is_none() -> None:
    run = Run(name="mine", status="succeeded", compute_unit="GPU-hours", last_compute=300.0, last_reward=0.7)
    run.unfitted = "The fit failed unexpectedly; the worker's log says why, at run_1. It is tried again."
    ended = "Succeeded after 300 GPU-hours at pass rate 0.70. "
    assert without_forecast(run) == f"{ended}No forecast ({run.unfitted[:-1]})."


def test_a_run_whose_cluster_does_not_answer_says_so() -> None:
    run = Run(name="mine", status="launching", compute_unit="GPU-hours")
    assert without_forecast(run) == "Being launched."
    run.reason = "Not submitted yet: http://ray:8265 did not answer the submission"
    assert without_forecast(run) == f"Being launched. {run.reason}."
    run.status, run.executor = "queued", "ray"
    assert without_forecast(run) == f"Waiting for a place on the cluster. {run.reason}."


def test_a_run_of_a_users_own_says_since_when_it_waits_for_its_first_report() -> None:
    run = Run(name="mine", status="queued", executor="external", attempt=1, compute_unit="GPU-hours")
    run.created_at = datetime(2026, 1, 5, 14, 30, tzinfo=timezone(timedelta(hours=2)))
    assert without_forecast(run) == "Waiting for its first report since 2026-01-05 12:30 UTC."
    run.attempt, run.reason = 2, "Resumed."
    assert without_forecast(run) == "Waiting for its first report. Resumed."


def test_of_a_traceback_alone_the_error_is_said() -> None:
    reason = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nValueError: no batch.\n'
    run = Run(name="mine", status="failed", reason=reason, compute_unit="GPU-hours")
    assert without_forecast(run) == "Failed: ValueError: no batch. No forecast was made."


def test_that_it_stopped_is_said_once() -> None:
    why = "Stopped as asked before it was submitted: Its sweep is over"
    run = Run(status="stopped", reason=why, compute_unit="CPU-seconds")
    assert without_forecast(run) == f"{why}. No forecast was made."
    run = Run(
        status="stopped", reason="Stopped as asked", compute_unit="CPU-seconds", last_compute=22.0, last_reward=0.63
    )
    ended = "Stopped after 22 CPU-seconds at pass rate 0.63, as asked. Ceiling 0.60"
    assert ended_sentence(run, SUMMARY).startswith(ended)
