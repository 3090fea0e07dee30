"""The sentence of a sweep: how far it is, then what was compared."""

from __future__ import annotations

from typing import NamedTuple

from server.sweeps.sentence import sweep_sentence


class Run(NamedTuple):
    status: str
    reason: str | None = None


def runs(*statuses: str) -> list[Run]:
    return [Run(status) for status in statuses]


def test_how_far_the_sweep_is_comes_before_what_its_arms_changed() -> None:
    compared = "Against control: ceiling down: low (-0.08)."
    assert sweep_sentence(runs("running", "running"), compared) == f"2 runs: 2 running. {compared}"
    assert sweep_sentence(runs("running", "running")) == "2 runs: 2 running."


def test_the_end_is_said_with_its_failures() -> None:
    assert sweep_sentence(runs("failed", "succeeded")) == "Both runs are over, 1 failed."
    assert sweep_sentence(runs("queued", "stopped")) == "2 runs: 1 queued, 1 over."
    assert sweep_sentence(runs(*["running"] * 1200, "stopped")) == "1,201 runs: 1,200 running, 1 over."
    assert sweep_sentence([]) == "No runs."


def test_what_runs_wait_for_and_why_they_failed_is_said_once() -> None:
    away = "Not submitted yet: http://127.0.0.1:8265 did not answer the submission (ConnectError)."
    waiting = [Run("launching", away), Run("launching", away), Run("queued")]
    assert sweep_sentence(waiting) == f"3 runs: 2 launching, 1 queued. 2 wait: {away}"
    traceback = "Traceback (most recent call last):\n  ...\ntorch.OutOfMemoryError: CUDA out of memory"
    ended = [Run("failed", traceback), Run("failed", traceback), Run("failed", "No heartbeat for 90 s.")]
    why = "3 failed, 2 of them: torch.OutOfMemoryError: CUDA out of memory."
    assert sweep_sentence(ended) == f"All 3 runs are over, {why}"
    assert sweep_sentence([*ended, Run("running")]) == f"4 runs: 1 running, 3 over. {why}"
    assert len(sweep_sentence([Run("failed", "x " * 5000), Run("stopped")])) < 250
