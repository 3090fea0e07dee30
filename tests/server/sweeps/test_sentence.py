"""The sentence of a sweep says only what the intervals carry."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from server.runs.schemas import Interval, Progress, RunView
from server.sweeps.sentence import sweep_sentence

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def run(name: str, ceiling: tuple[float, float, float] | None = None, **more: Any) -> RunView:
    values: dict[str, Any] = dict.fromkeys(RunView.model_fields)
    values |= {"id": name, "name": name, "arm": name, "changes": {}, "is_control": name == "control", "seed": 0}
    values |= {"executor": "ray", "status": "running", "desired_state": "run", "attempt": 1, "version": 1}
    values |= {"compute_unit": "GPU-hours", "sentence": "", "open_alerts": 0, "created_at": NOW, "updated_at": NOW}
    values |= {"progress": Progress(), "identified": 0.9, "withheld": False}
    if ceiling:
        values["ceiling"] = Interval(median=ceiling[0], lower=ceiling[1], upper=ceiling[2])
    return RunView(**(values | more))


CONTROL = run("control", (0.78, 0.76, 0.80))


def test_arms_whose_interval_stands_apart_are_named() -> None:
    arms = [run("low", (0.70, 0.68, 0.72)), run("high", (0.90, 0.85, 0.95)), run("same", (0.79, 0.75, 0.83))]
    said = sweep_sentence([CONTROL, *arms])
    assert said == (
        "4 runs: 4 running. Ceiling below the control's: `low` (0.70, 90 %: 0.68 to 0.72). "
        "Ceiling above the control's: `high` (0.90, 90 %: 0.85 to 0.95)."
    )


def test_what_is_not_identified_or_does_not_fit_is_not_compared() -> None:
    low = (0.70, 0.68, 0.72)
    arms = [run("a", low, identified=0.2), run("b", low, misfit="decline"), run("c", low, seed=1), run("d")]
    assert sweep_sentence([CONTROL, *arms]) == "5 runs: 5 running."


def test_the_end_is_said_with_its_failures() -> None:
    assert sweep_sentence([run("a", status="failed"), run("b", status="succeeded")]) == "All 2 runs are over, 1 failed."
    assert sweep_sentence([run("a", status="queued"), run("b", status="stopped")]) == "2 runs: 1 queued, 1 over."
    assert sweep_sentence([]) == "No runs."
