"""What the demo trains: the figures that decide how long it takes and what it shows, in one place."""

from __future__ import annotations

from typing import Any

PRESET = "scalerl"

CHANGES: dict[str, Any] = {
    "budget.compute": 30.0,
    "task.pool": 4096,
    "evaluation.every_steps": 5,
    "evaluation.prompts": 256,
    "evaluation.samples": 2,
}
"""Changes to the preset that every run of the demo shares. Compute is in the preset's unit, CPU-seconds.

Budget and pool are such that on a fast machine, too, a run goes some five times over its prompts at most: ten times
over those that No-Positive-Resampling leaves, the hardest ones, a run may unlearn the others (the testbed's guide).
"""

INGREDIENTS = ("cispo", "batch-scale", "zero-variance-filter", "pipeline")
"""Ingredients of ScaleRL that one arm each goes without; with the control these are the arms."""

BROKEN_NAME = "broken learning rate"
BROKEN: dict[str, Any] = {
    "budget.unit": "steps",
    "budget.compute": 130.0,
    "optimizer.milestones": [{"step": 88, "factor": 100.0}],
}
"""The extra run: its learning rate is multiplied on the way, which must show as a fall below its own forecast.

Its budget is in steps, so that the break comes after the forecast is frozen (at 35 % of the budget, step 46) on
any machine, fast or slow. It ends before the trainer gives up on its own: 50 batches without one right answer.
"""

DEADLINE_S = 1800.0
"""The demo gives up after this long; on two free cores it needs a small part of it."""
ALERT_GRACE_S = 45.0
"""After the last run's end: how long the last forecasts, the alert and its delivery may take."""


def sweep_body(name: str) -> dict[str, Any]:
    """The body of `POST /v1/sweeps`."""
    design = {"kind": "leave_one_out", "ingredients": list(INGREDIENTS)}
    return {"name": name, "preset": PRESET, "changes": CHANGES, "design": design, "policy": "advise"}


def broken_body() -> dict[str, Any]:
    """The body of `POST /v1/runs` of the run that goes wrong half-way."""
    return {"name": BROKEN_NAME, "preset": PRESET, "changes": CHANGES | BROKEN}
