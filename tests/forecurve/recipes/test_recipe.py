"""The Recipe: what it refuses, and that its digest names it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecurve.recipes import (
    PRESETS,
    SCALERL,
    RecipeError,
    diff,
    get_value,
    leaf_paths,
    load_recipe,
    preset,
    with_changes,
)

BOUND_TO_OTHERS = {
    "name",
    "model.width",
    "model.heads",
    "task.min_moves",
    "task.max_moves",
    "generation.top_p",
    "length_control.after_high",
    "length_control.answer_tokens",
}
"""Fields whose next value does not go with another field's, and the name, which is not part of the digest."""


def fault(body: Any) -> dict[str, Any]:
    with pytest.raises(RecipeError) as caught:
        load_recipe(body)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


def test_an_unknown_key_is_named_with_the_near_miss() -> None:
    problem = fault({"algorithm": {"los": "cispo"}})
    assert problem["field"] == "algorithm.los"
    assert problem["value"] == "cispo"
    assert "did you mean `loss`" in problem["message"]


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("optimizer.lr", "optimizer.learning_rate"),
        ("lr", "optimizer.learning_rate"),
        ("optimizer.learnin_rate", "optimizer.learning_rate"),
        ("algorithm.kl", "algorithm.kl_coefficient"),
    ],
)
def test_a_field_that_is_cut_short_or_misspelt_is_guessed(path: str, meant: str) -> None:
    with pytest.raises(RecipeError) as caught:
        with_changes(SCALERL, {path: 1})
    assert f"did you mean `{meant}`" in str(caught.value)


def test_an_unknown_section_lists_what_exists() -> None:
    problem = fault({"zzz": 1})
    assert problem["field"] == "zzz"
    assert "algorithm" in problem["message"]


def test_every_fault_is_reported_at_once() -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe({"optimizer": {"learning_rate": -1}, "batch": {"generations_per_prompt": 1}, "foo": 1})
    assert {p["field"] for p in caught.value.problems} == {
        "optimizer.learning_rate",
        "batch.generations_per_prompt",
        "foo",
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, -1e-3, "fast"])
def test_a_learning_rate_that_is_no_positive_number_is_refused(value: Any) -> None:
    problem = fault({"optimizer": {"learning_rate": value}})
    assert problem["field"] == "optimizer.learning_rate"


@pytest.mark.parametrize("rewards", [{"correct": 1e200}, {"wrong": -1e7}])
def test_rewards_whose_spread_no_number_could_hold_are_refused(rewards: dict[str, float]) -> None:
    problem = fault({"rewards": rewards})
    [(name, value)] = rewards.items()
    assert (problem["field"], problem["value"]) == (f"rewards.{name}", value)
    assert "1e+06" in problem["message"]


def test_a_recipe_that_is_no_mapping_is_refused() -> None:
    assert fault([1, 2])["field"] == "recipe"


def test_milestones_must_rise() -> None:
    milestones = [{"step": 20, "factor": 2}, {"step": 10, "factor": 3}]
    problem = fault({"optimizer": {"milestones": milestones}})
    assert problem["field"] == "optimizer.milestones"
    assert "[20, 10]" in problem["message"]


def test_width_must_divide_by_heads() -> None:
    assert "not a multiple of heads 4" in fault({"model": {"width": 66}})["message"]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_survives_the_trip_through_json(name: str) -> None:
    recipe = preset(name)
    again = load_recipe(json.loads(json.dumps(recipe.to_dict())))
    assert again == recipe
    assert again.digest == recipe.digest


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(RecipeError, match="scalerl"):
        preset("scale-rl")


def test_the_digest_ignores_the_name_and_sees_everything_else() -> None:
    assert with_changes(SCALERL, {"name": "other"}).digest == SCALERL.digest
    changed = {path: _another_value(path) for path in leaf_paths(SCALERL) if _another_value(path) is not None}
    digests = {with_changes(SCALERL, {path: value}).digest for path, value in changed.items()}
    assert len(digests) == len(changed)
    assert SCALERL.digest not in digests


def _another_value(path: str) -> Any:
    value = get_value(SCALERL, path)
    if path in BOUND_TO_OTHERS:
        return None
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value * 0.5 or 1.0 if isinstance(value, float) else None


def test_a_change_to_a_field_that_does_not_exist_names_the_field() -> None:
    with pytest.raises(RecipeError) as caught:
        with_changes(SCALERL, {"loss": "dapo"})
    assert caught.value.problems[0]["field"] == "loss"
    assert "algorithm.loss" in caught.value.problems[0]["message"]


def test_a_section_is_no_field() -> None:
    with pytest.raises(RecipeError, match="is a section"):
        with_changes(SCALERL, {"optimizer": {}})


@given(st.sampled_from(leaf_paths(SCALERL)))
def test_setting_a_field_to_its_own_value_changes_nothing(path: str) -> None:
    assert with_changes(SCALERL, {path: get_value(SCALERL, path)}) == SCALERL


def test_beside_another_kind_the_difference_has_only_what_is_not_that_kinds_default() -> None:
    dataset = with_changes(
        SCALERL,
        {
            "task.kind": "dataset",
            "task.train": "prompts.jsonl",
            "model.kind": "huggingface",
            "model.path": "models/small",
            "curriculum": "none",
            "length_control.kind": "none",
        },
    )
    changed = {path for path in diff(SCALERL, dataset) if path.startswith(("task.", "model."))}
    assert changed == {"task.kind", "task.train", "model.kind", "model.path"}


def test_diff_shows_the_fields_that_differ_and_only_those() -> None:
    other = with_changes(SCALERL, {"algorithm.loss": "dapo", "seed": 3, "name": "x"})
    assert diff(SCALERL, other) == {"algorithm.loss": ("cispo", "dapo"), "seed": (0, 3)}


def test_of_very_many_faults_the_first_are_named_and_the_others_counted() -> None:
    with pytest.raises(RecipeError) as refused:
        load_recipe({f"field{number}": {} for number in range(1000)})
    *named, rest = refused.value.problems
    assert len(named) == 50
    assert rest == {"field": "recipe", "value": None, "message": "has 950 faults more"}
