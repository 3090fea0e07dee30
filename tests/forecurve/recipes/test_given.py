"""Recipes and changes as a person gives them: YAML with what JSON has, or an error that says which value it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forecurve.recipes import RecipeError
from forecurve.recipes.given import read_changes, read_yaml

UNTAKEN = ["9" * 5000, "[" * 3000, "!!binary aGk=", "!!set {a, b}", "!!timestamp 2026-01-01", "{a: 1, a: 2}", "[1"]


def _brief(text: str) -> str:
    """The name of its test."""
    return text[:20]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1e-4", 1e-4), ("null", None), ("true", True), ("[1, 2]", [1, 2]), ("{kind: torus}", {"kind": "torus"})),
        *(("2026-01-01", "2026-01-01"), ("2001-99-99", "2001-99-99"), ("cispo", "cispo"), ("a = b", "a = b")),
    ],
)
def test_a_value_is_what_a_person_means(text: str, value: Any) -> None:
    assert read_changes([f"task = {text}"]) == {"task": value}


@pytest.mark.parametrize("text", [*UNTAKEN, "[&a 1, *a]"], ids=_brief)
def test_a_value_that_cannot_be_made_is_told(text: str) -> None:
    with pytest.raises(RecipeError) as error:
        read_changes([f"seed={text}"])
    (fault,) = error.value.problems
    assert fault["value"] == f"seed={text}"
    assert fault["message"].endswith("is no YAML value")


@pytest.mark.parametrize("text", UNTAKEN, ids=_brief)
def test_a_file_that_cannot_be_made_is_told(text: str, tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(f"seed: {text}\n")
    with pytest.raises(RecipeError, match="is no YAML"):
        read_yaml(file)


def test_a_file_may_name_a_part_of_it_and_use_it_again(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text("changes: &base {seed: 1}\ndesign:\n  <<: *base\n  kind: grid\n")
    assert read_yaml(file) == {"changes": {"seed": 1}, "design": {"seed": 1, "kind": "grid"}}
