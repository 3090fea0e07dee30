"""Sweep designs: arms, runs, and what they refuse."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecurve.recipes import (
    SCALERL,
    SCALERL_REVERSIONS,
    Recipe,
    RecipeError,
    diff,
    expand,
    load_design,
    plan_hash,
    planned_runs,
    with_changes,
)


def fault(body: Any) -> dict[str, Any]:
    with pytest.raises(RecipeError) as caught:
        planned_runs(SCALERL, load_design(body))
    return caught.value.problems[0]


def test_leave_one_out_reverts_each_ingredient_alone() -> None:
    arms = expand(SCALERL, load_design({"kind": "leave_one_out"}))
    assert [arm.name for arm in arms] == ["control", *(f"no-{name}" for name in SCALERL_REVERSIONS)]
    for arm in arms[1:]:
        changed = {path: after for path, (_, after) in diff(SCALERL, arm.recipe).items()}
        assert changed == arm.changes == SCALERL_REVERSIONS[arm.name.removeprefix("no-")]


def test_leave_one_out_of_chosen_ingredients_only() -> None:
    arms = expand(SCALERL, load_design({"kind": "leave_one_out", "ingredients": ["cispo", "pipeline"]}))
    assert [arm.name for arm in arms] == ["control", "no-cispo", "no-pipeline"]


def test_an_unknown_ingredient_is_named() -> None:
    problem = fault({"kind": "leave_one_out", "ingredients": ["cispoo"]})
    assert problem["field"] == "design.ingredients"
    assert "did you mean `cispo`" in problem["message"]


LACKING: dict[str, tuple[dict[str, Any], str]] = {
    "cispo": (
        {"algorithm.loss": "gspo", "algorithm.clip_low": 4e-3, "algorithm.clip_high": 5e-3},
        "algorithm.loss is gspo, and ScaleRL's is cispo",
    ),
    "prompt-aggregation": ({"algorithm.aggregation": "token"}, "algorithm.aggregation is token"),
    "batch-scale": ({"algorithm.advantage_scale": "none"}, "algorithm.advantage_scale is none"),
    "zero-variance-filter": ({"algorithm.zero_variance_filter": "refill"}, "algorithm.zero_variance_filter is refill"),
    "fp32-head": ({"algorithm.logits_precision": "bf16"}, "algorithm.logits_precision is bf16"),
    "pipeline": ({"algorithm.off_policy": "on-policy", "algorithm.max_staleness": 0}, "off_policy is on-policy"),
    "interruption": ({"length_control.kind": "none"}, "length_control.kind is none, and ScaleRL's is interruption"),
    "no-positive-resampling": ({"algorithm.no_positive_resampling": None}, "is null, and ScaleRL's is 0.9"),
}


@pytest.mark.parametrize("ingredient", LACKING)
def test_an_ingredient_that_the_base_lacks_cannot_be_left_out(ingredient: str) -> None:
    changes, said = LACKING[ingredient]
    base = with_changes(SCALERL, changes)
    with pytest.raises(RecipeError, match="the base recipe lacks") as caught:
        expand(base, load_design({"kind": "leave_one_out"}))
    [problem] = caught.value.problems
    rest = [name for name in SCALERL_REVERSIONS if name != ingredient]
    assert (problem["field"], problem["value"]) == ("design.ingredients", [ingredient])
    assert f"{ingredient} (" in problem["message"]
    assert said in problem["message"]
    assert f"set `ingredients` to {json.dumps(rest)}" in problem["message"]
    assert len(expand(base, load_design({"kind": "leave_one_out", "ingredients": rest}))) == len(SCALERL_REVERSIONS)


def test_all_that_the_base_lacks_is_told_at_once() -> None:
    with pytest.raises(RecipeError) as caught:
        expand(Recipe(), load_design({"kind": "leave_one_out"}))
    assert caught.value.problems[0]["value"] == ["interruption", "no-positive-resampling"]
    with pytest.raises(RecipeError, match="take another base recipe"):
        expand(Recipe(), load_design({"kind": "leave_one_out", "ingredients": ["interruption"]}))


def test_no_positive_resampling_of_another_threshold_can_be_left_out() -> None:
    base = with_changes(SCALERL, {"algorithm.no_positive_resampling": 0.8})
    arms = expand(base, load_design({"kind": "leave_one_out", "ingredients": ["no-positive-resampling"]}))
    assert arms[1].changes == {"algorithm.no_positive_resampling": None}


def test_the_penalty_in_place_of_interruption_is_as_large_as_the_budget_of_the_base() -> None:
    base = with_changes(
        SCALERL,
        {
            "model.kind": "huggingface",
            "model.path": "/models/a",
            "generation.max_tokens": 14_336,
            "length_control.after_low": 10_240,
            "length_control.after_high": 12_288,
        },
    )
    arm = expand(base, load_design({"kind": "leave_one_out", "ingredients": ["interruption"]}))[1]
    assert arm.changes == {
        "length_control.kind": "penalty",
        "length_control.longest": 14_336,
        "length_control.cushion": 2_048,
    }
    assert arm.recipe.length_control.model_dump() == {"kind": "penalty", "longest": 14_336, "cushion": 2_048}


def test_one_factor_changes_one_field_an_arm_and_skips_the_base_value() -> None:
    design = load_design(
        {"kind": "one_factor", "factors": {"optimizer.learning_rate": [1e-4, 3e-4], "algorithm.loss": ["dapo"]}}
    )
    arms = expand(SCALERL, design)
    assert [arm.changes for arm in arms] == [{}, {"optimizer.learning_rate": 1e-4}, {"algorithm.loss": "dapo"}]


def test_a_grid_crosses_all_fields_and_names_only_differences() -> None:
    factors = {"algorithm.loss": ["cispo", "dapo"], "batch.prompts_per_step": [8, 32]}
    arms = expand(SCALERL, load_design({"kind": "grid", "factors": factors}))
    assert [arm.changes for arm in arms] == [
        {},
        {"batch.prompts_per_step": 8},
        {"algorithm.loss": "dapo", "batch.prompts_per_step": 8},
        {"algorithm.loss": "dapo"},
    ]


TWINS = {"evaluation.every_steps": [5, 20], "checkpoint.every_steps": [20, 30]}
"""Two fields that end alike."""


@pytest.mark.parametrize(("kind", "arms"), [("one_factor", 5), ("grid", 5)])
def test_fields_that_end_alike_are_named_in_full_and_lose_no_arm(kind: str, arms: int) -> None:
    base = with_changes(SCALERL, {"evaluation.every_steps": 10, "checkpoint.every_steps": 10})
    names = [arm.name for arm in expand(base, load_design({"kind": kind, "factors": TWINS}))]
    assert len(set(names)) == len(names) == arms
    assert any("evaluation.every_steps=20" in name for name in names)


def test_an_ingredient_cannot_be_left_out_twice() -> None:
    problem = fault({"kind": "leave_one_out", "ingredients": ["cispo", "cispo"]})
    assert "same recipe as arm `no-cispo`" in problem["message"]


def test_the_seed_is_no_factor() -> None:
    problem = fault({"kind": "one_factor", "factors": {"seed": [1, 2]}})
    assert problem["field"] == "design.factors.seed"
    assert "`design.seeds`" in problem["message"]


def test_every_arm_runs_with_every_seed() -> None:
    design = load_design({"kind": "leave_one_out", "ingredients": ["cispo"], "seeds": [1, 2, 3]})
    runs = planned_runs(SCALERL, design)
    assert [(run.arm, run.seed) for run in runs] == [
        (arm, seed) for seed in (1, 2, 3) for arm in ("control", "no-cispo")
    ]
    assert all(run.recipe.seed == run.seed for run in runs)
    assert [run.is_control for run in runs] == [True, False] * 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "grid", "factors": {"optimizer.lr": [1]}}, "optimizer.lr"),
        ({"kind": "one_factor", "factors": {"algorithm.loss": ["x"]}}, "algorithm.loss"),
        ({"kind": "one_factor", "factors": {"algorithm.loss": []}}, "design.factors.algorithm.loss"),
        ({"kind": "one_factor", "factors": {"algorithm.loss": ["dapo", "dapo"]}}, "design.factors.algorithm.loss"),
        ({"kind": "one_factor", "factors": {"name": ["a", "b"]}}, "design.factors.name"),
        ({"kind": "grid", "factors": {"name": ["a", "b"], "algorithm.loss": ["dapo"]}}, "design.factors.name"),
        ({"kind": "leave_one_out", "seeds": [1, 1]}, "design.seeds"),
        ({"kind": "leave_one_out", "seeds": []}, "design.seeds"),
        ({"kind": "leave_one_out", "seed": [1]}, "design.seed"),
        ({"kind": "random"}, "design.kind"),
        ({}, "design.kind"),
        (None, "design"),
        ({"kind": "leave_one_out", "seeds": list(range(100)), "ingredients": []}, None),
    ],
)
def test_a_design_that_cannot_be_run_names_its_field(body: Any, field: str | None) -> None:
    if field is None:
        assert len(planned_runs(SCALERL, load_design(body))) == 100
        return
    assert fault(body)["field"] == field


def test_every_factor_that_is_no_field_is_told_with_its_values() -> None:
    factors = {"optimizer.lr": [1, 2], "algorithm.loss": ["dapo"], "batch": [3]}
    with pytest.raises(RecipeError) as caught:
        expand(SCALERL, load_design({"kind": "grid", "factors": factors}))
    assert [(one["field"], one["value"]) for one in caught.value.problems] == [("optimizer.lr", [1, 2]), ("batch", [3])]


def test_more_runs_than_a_sweep_may_have_are_refused() -> None:
    values = [i / 1000 for i in range(1, 60)]
    body = {"kind": "one_factor", "factors": {"optimizer.learning_rate": values}, "seeds": list(range(40))}
    assert "split the sweep" in fault(body)["message"]


NUMBERS = [1e-5 * i for i in range(1, 101)]


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "grid", "factors": {"optimizer.learning_rate": NUMBERS, "optimizer.weight_decay": NUMBERS,
                                     "batch.prompts_per_step": list(range(1, 100_001))}},
        {"kind": "one_factor", "factors": {"batch.prompts_per_step": list(range(1, 100_001))}},
        {"kind": "leave_one_out", "ingredients": ["cispo"] * 100_000},
    ],
)  # fmt: skip
def test_too_many_runs_are_counted_not_built(body: dict[str, Any]) -> None:
    began = time.process_time()
    assert "split the sweep" in fault(body)["message"]
    assert time.process_time() - began < 1.0


@given(st.permutations(sorted(SCALERL_REVERSIONS)))
def test_the_plan_hash_names_exactly_what_would_run(ingredients: list[str]) -> None:
    design = load_design({"kind": "leave_one_out", "ingredients": ingredients})
    assert plan_hash(SCALERL, design) == plan_hash(
        SCALERL, load_design({"kind": "leave_one_out", "ingredients": ingredients})
    )
    other = load_design({"kind": "leave_one_out", "ingredients": ingredients[:-1]})
    assert plan_hash(SCALERL, design) != plan_hash(SCALERL, other)
    assert plan_hash(SCALERL, design) != plan_hash(with_changes(SCALERL, {"seed": 1}), design)


def test_a_grid_of_more_arms_than_can_be_written_out_is_refused_as_too_many() -> None:
    factors = {f"field{number}": [1, 2] for number in range(20_000)}
    assert "this is more than 2000 runs; split the sweep" in fault({"kind": "grid", "factors": factors})["message"]
