"""The sentence of a sweep: how far it is, then what was compared."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from server.runs.schemas import Progress, RunView
from server.sweeps.sentence import sweep_sentence

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def run(name: str, **more: Any) -> RunView:
    values: dict[str, Any] = dict.fromkeys(RunView.model_fields)
    values |= {"id": name, "name": name, "arm": name, "changes": {}, "is_control": name == "control", "seed": 0}
    values |= {"executor": "ray", "status": "running", "desired_state": "run", "attempt": 1, "version": 1}
    values |= {"compute_unit": "GPU-hours", "sentence": "", "open_alerts": 0, "created_at": NOW, "updated_at": NOW}
    values |= {"progress": Progress(), "identified": 0.9, "ceiling_known": True, "withheld": False}
    return RunView(**(values | more))


def test_how_far_the_sweep_is_comes_before_what_its_arms_changed() -> None:
    runs = [run("control"), run("low")]
    compared = "Against control: ceiling down: low (-0.08)."
    assert sweep_sentence(runs, compared) == f"2 runs: 2 running. {compared}"
    assert sweep_sentence(runs) == "2 runs: 2 running."


def test_the_end_is_said_with_its_failures() -> None:
    assert sweep_sentence([run("a", status="failed"), run("b", status="succeeded")]) == "Both runs are over, 1 failed."
    assert sweep_sentence([run("a", status="queued"), run("b", status="stopped")]) == "2 runs: 1 queued, 1 over."
    assert sweep_sentence([]) == "No runs."
