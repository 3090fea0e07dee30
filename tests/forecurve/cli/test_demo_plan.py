"""The demo's plan holds together: its recipes are valid, and its broken run breaks when a forecast can see it."""

from __future__ import annotations

from forecurve.cli.demo import plan as demo_plan
from forecurve.recipes import CONTROL, Recipe, load_design, planned_runs, preset, with_changes
from server.settings import Settings


def broken_recipe() -> Recipe:
    return with_changes(preset(demo_plan.PRESET), demo_plan.broken_body()["changes"])


def test_the_sweep_has_a_control_and_at_least_three_arms_that_differ_in_one_field() -> None:
    body = demo_plan.sweep_body("demo")
    base = with_changes(preset(body["preset"]), body["changes"])

    runs = planned_runs(base, load_design(body["design"]))

    assert runs[0].arm == CONTROL
    assert len(runs) >= 4
    assert all(len(run.changes) == 1 for run in runs[1:])


def test_the_break_comes_after_the_freeze_and_leaves_time_for_an_alert() -> None:
    settings = Settings(DATABASE_URL="postgresql://unused")
    recipe = broken_recipe()
    every, budget = recipe.evaluation.every_steps, recipe.budget.compute
    (milestone,) = recipe.optimizer.milestones
    before = [step for step in range(0, milestone.step, every) if step >= settings.freeze_fraction * budget]
    after = [step for step in range(milestone.step + 1, int(budget) + 1) if step % every == 0]

    assert recipe.budget.unit == "steps"  # the same on any machine
    assert len(before) >= 2
    assert milestone.step // every >= settings.freeze_min_points
    assert len(after) >= 8
