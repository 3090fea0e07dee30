"""Fields that are each valid alone and do not go together."""

from __future__ import annotations

import re
from typing import Any

import pytest

from forecurve.recipes import (
    SCALERL,
    RecipeError,
    diff,
    expand,
    load_design,
    load_recipe,
    other_course,
    other_weights,
    with_changes,
)

INTERRUPTED = {"kind": "interruption", "after_low": 10, "after_high": 15, "answer_tokens": 8}
LOCAL = {"kind": "huggingface", "path": "models/small"}
DATASET = {"kind": "dataset", "train": "rows.jsonl"}


def problems(body: Any) -> dict[str, dict[str, Any]]:
    with pytest.raises(RecipeError) as caught:
        load_recipe(body)
    return {problem["field"]: problem for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"generation": {"top_p": 0.9}}, "generation.top_p", "importance ratio"),
        ({"algorithm": {"off_policy": "on-policy"}}, "algorithm.max_staleness", "set it to 0"),
        ({"algorithm": {"off_policy": "ppo", "max_staleness": 0}}, "algorithm.max_staleness", "set 1 or more"),
        ({"algorithm": {"max_staleness": 0}}, "algorithm.max_staleness", "pipeline needs some staleness"),
        (
            {"algorithm": {"loss": "gspo", "clip_low": 3e-3, "clip_high": 4e-3, "aggregation": "token"}},
            "algorithm.aggregation",
            "sample or prompt",
        ),
        ({"algorithm": {"loss": "gspo", "clip_low": 3e-3}}, "algorithm.clip_high", "4e-3"),
        ({"algorithm": {"no_positive_resampling": 0.9}}, "algorithm.no_positive_resampling", "task.pool"),
        (
            {"algorithm": {"no_positive_resampling": 0.9}, "task": {"pool": 32}},
            "algorithm.min_active_prompts",
            "no prompt could ever be left out",
        ),
        ({"curriculum": "easy-first"}, "curriculum", "task.pool"),
        ({"length_control": INTERRUPTED}, "length_control.after_high", "are 24, but generation.max_tokens is 23"),
        ({"length_control": INTERRUPTED | {"after_low": 16}}, "length_control.after_low", "after_high, 15"),
        (
            {"length_control": {"kind": "penalty", "longest": 30, "cushion": 4}},
            "length_control.longest",
            "begins at 26 tokens",
        ),
        (
            {"length_control": {"kind": "penalty", "longest": 20, "cushion": 20}},
            "length_control.cushion",
            "longest, 20",
        ),
        ({"generation": {"engine": "vllm"}}, "generation.engine", "tiny model"),
        ({"generation": {"max_tokens": 65}}, "generation.max_tokens", "64 response positions"),
        ({"task": DATASET}, "model.kind", "no tokenizer"),
        (
            {"task": DATASET | {"verifiers": {"math": "maths"}}, "model": LOCAL},
            "task.verifiers.math",
            "math, code, exact",
        ),
        (
            {"task": DATASET | {"verifiers": {"math": "no:such:thing"}, "verifier_modules": ["mine"]}, "model": LOCAL},
            "task.verifiers.math",
            "a name that a module of task.verifier_modules registers",
        ),
        (
            {"task": DATASET | {"verifier_modules": ["mine"]}, "model": LOCAL},
            "task.verifier_modules",
            "leave the modules out",
        ),
        ({"task": DATASET | {"mixture": {"code": 1}}, "model": LOCAL}, "task.mixture.code", "no verifier checks"),
        (
            {"task": DATASET | {"chat_template": False, "system_prompt": "Think."}, "model": LOCAL},
            "task.system_prompt",
            "chat message",
        ),
        (
            {"optimizer": {"schedule": "cosine", "warmup_steps": 50}, "budget": {"unit": "steps", "compute": 50}},
            "optimizer.warmup_steps",
            "all 50 steps",
        ),
        (
            {
                "task": DATASET | {"verifiers": {"code": "code"}, "code_seconds": 60},
                "model": LOCAL,
                "resources": {"stall_seconds": 60},
            },
            "resources.stall_seconds",
            "one verdict take 60 s",
        ),
        (
            {"task": DATASET | {"verifiers": {"math": "math"}}, "model": LOCAL, "resources": {"stall_seconds": 10}},
            "resources.stall_seconds",
            "task.verifiers may take 10 s, which would count as a stall; allow more",
        ),
        ({"resources": {"gpus": 3}}, "resources.gpus", "the 2 actors would have 1.5, .* take 2 or 4"),
        ({"resources": {"gpus": 2, "generators": 2}}, "resources.gpus", "would have 0.667, .* take 1.5 or 3"),
        ({"rewards": {"correct": -1}}, "rewards.correct", "rewards.wrong"),
        ({"model": {"width": 66}}, "model.width", "multiple of heads"),
        ({"task": {"min_moves": 9, "max_moves": 8}}, "task.min_moves", "max_moves, 8"),
    ],
)
def test_the_field_is_named_with_the_way_out(body: Any, field: str, message: str) -> None:
    if "length_control" in body:
        body = {"generation": {"max_tokens": 23}} | body
    found = problems(body)
    assert list(found) == [field]
    assert re.search(message, found[field]["message"])


def test_what_just_fits_is_taken() -> None:
    load_recipe({"length_control": INTERRUPTED, "generation": {"max_tokens": 24}})
    for gpus, generators in ((0.3, 4), (1, 6), (1.66667, 4), (2.5, 4), (5, 4), (10, 4)):
        load_recipe({"resources": {"gpus": gpus, "generators": generators}})
    load_recipe({"algorithm": {"no_positive_resampling": 0.9}, "task": {"pool": 33}})
    load_recipe({"algorithm": {"no_positive_resampling": 0.9}, "task": DATASET, "model": LOCAL})
    load_recipe({"generation": {"engine": "vllm", "max_tokens": 65}, "model": LOCAL})
    load_recipe({"task": DATASET | {"verifiers": {"a": "my-own"}, "verifier_modules": ["my.module"]}, "model": LOCAL})
    load_recipe({"task": DATASET | {"code_seconds": 60}, "model": LOCAL, "resources": {"stall_seconds": 60}})
    by_text = DATASET | {"verifiers": {"math": "exact"}}
    load_recipe({"task": by_text, "model": LOCAL, "resources": {"stall_seconds": 10}})


def test_all_of_them_are_told_at_once() -> None:
    body = {"curriculum": "easy-first", "generation": {"engine": "vllm", "max_tokens": 65}, "task": DATASET}
    assert set(problems(body)) == {"generation.engine", "generation.max_tokens", "model.kind"}
    in_one_section = {"algorithm": {"loss": "gspo", "aggregation": "token", "off_policy": "on-policy"}}
    assert {field.removeprefix("algorithm.") for field in problems(in_one_section)} == {
        "aggregation",
        "clip_low",
        "clip_high",
        "max_staleness",
    }


def test_an_unknown_kind_is_named_with_the_near_miss() -> None:
    found = problems({"length_control": {"kind": "interuption"}})["length_control.kind"]
    assert found["value"] == "interuption"
    assert "did you mean `interruption`" in found["message"]


def test_a_field_of_another_kind_says_which_kind_has_it() -> None:
    found = problems({"model": {"path": "models/small"}})["model.path"]
    assert "belongs to kind huggingface, chosen by `model.kind`" in found["message"]


def test_a_missing_field_of_a_kind_is_named_without_the_kind_in_its_path() -> None:
    assert list(problems({"task": {"kind": "dataset"}, "model": LOCAL})) == ["task.train"]


def test_another_kind_begins_with_its_own_defaults_whatever_the_order_of_changes() -> None:
    changes = {"length_control.answer_tokens": 2, "length_control.kind": "interruption"}
    changed = with_changes(load_recipe({}), changes)
    assert changed.to_dict()["length_control"] == {
        "kind": "interruption",
        "after_low": 18,
        "after_high": 20,
        "phrase": ">",
        "answer_tokens": 2,
    }
    assert with_changes(changed, {"length_control.kind": "interruption"}) == changed
    back = with_changes(changed, {"length_control.kind": "none"})
    assert diff(changed, back) == {"length_control.kind": ("interruption", "none")}


def test_kinds_can_be_swept() -> None:
    factors = {"length_control.kind": ["none", "interruption", "penalty"]}
    arms = expand(
        with_changes(SCALERL, {"length_control.kind": "none"}), load_design({"kind": "one_factor", "factors": factors})
    )
    assert [arm.changes for arm in arms] == [
        {},
        {"length_control.kind": "interruption"},
        {"length_control.kind": "penalty"},
    ]


def test_a_field_that_only_another_kind_has_cannot_be_swept() -> None:
    design = load_design({"kind": "one_factor", "factors": {"length_control.longest": [20, 24]}})
    with pytest.raises(RecipeError, match=r"belongs to length_control\.kind penalty"):
        expand(with_changes(SCALERL, {"length_control.kind": "none"}), design)


def test_weights_are_anothers_when_their_shape_is_and_not_when_only_their_precision_is() -> None:
    base = with_changes(SCALERL, {"model.kind": "huggingface", "model.path": "/models/a"})
    same = {"model.dtype": "bf16", "model.gradient_checkpointing": True, "optimizer.learning_rate": 1e-5, "seed": 3}
    assert other_weights(base, with_changes(base, same)) == {}
    assert other_weights(base, with_changes(base, {"model.path": "/models/b"})) == {
        "model.path": ("/models/a", "/models/b")
    }
    assert set(other_weights(SCALERL, with_changes(SCALERL, {"model.layers": 3, "seed": 3}))) == {"model.layers"}
    assert "model.kind" in other_weights(SCALERL, base)


def test_a_larger_budget_leaves_the_course_of_a_run_unless_the_learning_rate_falls_towards_its_end() -> None:
    more = {"budget.compute": 900.0, "budget.max_steps": 5000, "checkpoint.keep_last": 5}
    assert other_course(SCALERL, with_changes(SCALERL, more)) == {}
    falling = with_changes(SCALERL, {"optimizer.schedule": "cosine", "budget.max_steps": 4000})
    assert set(other_course(falling, with_changes(falling, more))) == {"budget.max_steps"}
    assert set(other_course(with_changes(SCALERL, more), falling)) == {"optimizer.schedule", "budget.max_steps"}


def test_a_budget_in_steps_is_where_a_falling_learning_rate_ends() -> None:
    falling = with_changes(SCALERL, {"optimizer.schedule": "cosine", "budget.unit": "steps", "budget.compute": 100})
    assert set(other_course(falling, with_changes(falling, {"budget.compute": 400}))) == {"budget.compute"}
    assert set(other_course(falling, with_changes(falling, {"budget.max_steps": 50}))) == {"budget.max_steps"}
    assert other_course(falling, with_changes(falling, {"budget.max_steps": 5000})) == {}
    level = with_changes(falling, {"optimizer.schedule": "constant"})
    assert other_course(level, with_changes(level, {"budget.compute": 400})) == {}


def test_another_unit_of_compute_is_another_course() -> None:
    steps = with_changes(SCALERL, {"budget.unit": "steps"})
    assert set(other_course(SCALERL, steps)) == {"budget.unit"}
