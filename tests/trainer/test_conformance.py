"""The conformance page names functions and tests that exist, and the length penalty that no other test knows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from forecurve.recipes import PRESETS, check_path
from forecurve.recipes.schema import LengthPenalty
from trainer.algorithm.rewards import length_penalty, rewards
from trainer.types import Responses

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "conformance.md").read_text()


def defined_in(path: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)}


@pytest.mark.parametrize("place", sorted(set(re.findall(r"`(trainer/[\w/]+\.py:\w+)`", PAGE))))
def test_every_place_that_the_page_names_exists(place: str) -> None:
    file, name = place.split(":")
    assert name in defined_in(ROOT / file)


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    found = {name for file in (ROOT / "tests" / "trainer").rglob("test_*.py") for name in defined_in(file)}
    assert len(named) > 20
    assert named - found == set()


def test_every_field_and_preset_that_the_page_names_exists() -> None:
    for path in set(re.findall(r"`((?:algorithm|length_control|generation)\.\w+)(?:`|:)", PAGE)):
        check_path(path)
    assert set(PRESETS) == set(re.findall(r"`(scalerl|grpo-\w+|dapo-\w+|magistral|minimax-m1|loo-[\w-]+)`", PAGE))


@pytest.mark.parametrize(("length", "penalty"), [(10, 0.0), (20, 0.0), (21, -0.25), (22, -0.5), (24, -1.0), (30, -1.0)])
def test_the_length_penalty_is_the_paper_s_and_touches_right_answers_only(recipe, length, penalty):
    control = LengthPenalty(longest=24, cushion=4)
    assert length_penalty(np.array([length]), control)[0] == pytest.approx(penalty)
    knobs = {"length_control.kind": "penalty", "length_control.longest": 24, "length_control.cushion": 4}
    shape = (2, length)
    responses = Responses(
        key=0,
        tokens=np.zeros(shape, dtype=np.int64),
        logprobs=np.zeros(shape, dtype=np.float32),
        versions=np.zeros(shape, dtype=np.int32),
        sampled=np.ones(shape, dtype=bool),
        lengths=np.array([length, length]),
        finished=np.ones(2, dtype=bool),
        interrupted=np.zeros(2, dtype=bool),
    )
    given = rewards(recipe(knobs | {"generation.max_tokens": 24}), np.array([True, False]), responses)
    assert given == pytest.approx([1.0 + penalty, -1.0])
