"""The sentence of a sweep: how far it is, then what was compared."""

from __future__ import annotations

from server.sweeps.sentence import sweep_sentence


def test_how_far_the_sweep_is_comes_before_what_its_arms_changed() -> None:
    compared = "Against control: ceiling down: low (-0.08)."
    assert sweep_sentence(["running", "running"], compared) == f"2 runs: 2 running. {compared}"
    assert sweep_sentence(["running", "running"]) == "2 runs: 2 running."


def test_the_end_is_said_with_its_failures() -> None:
    assert sweep_sentence(["failed", "succeeded"]) == "Both runs are over, 1 failed."
    assert sweep_sentence(["queued", "stopped"]) == "2 runs: 1 queued, 1 over."
    assert sweep_sentence(["running"] * 1200 + ["stopped"]) == "1,201 runs: 1,200 running, 1 over."
    assert sweep_sentence([]) == "No runs."
