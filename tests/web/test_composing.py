"""Texts of the form for new runs and sweeps, as the bodies that the API takes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from forecurve.cli.given.recipes import sweep_request
from forecurve.recipes import RecipeError
from forecurve.recipes.given import read_changes
from web.composing import INGREDIENTS, Composed, as_command, changes_of, factors_of, seeds_of

VALUES = st.one_of(
    st.integers(-10, 10**6), st.booleans(), st.floats(1e-6, 1e6), st.sampled_from(["cispo", "easy-first", "off"])
)
FIELDS = st.sampled_from(["budget.compute", "algorithm.loss", "optimizer.learning_rate", "seed"])


def faults(error: pytest.ExceptionInfo[RecipeError]) -> list[str]:
    return [fault["field"] for fault in error.value.problems]


def test_a_form_that_is_only_opened_leaves_out_every_ingredient() -> None:
    assert Composed().body() == {
        "preset": "scalerl",
        "design": {"kind": "leave_one_out", "seeds": [0]},
        "policy": "advise",
    }
    assert Composed().ticked == list(INGREDIENTS)


def test_what_is_composed_is_the_body_of_a_sweep() -> None:
    composed = Composed(
        kind="grid",
        base="recipe:rec_1",
        name="  lrs ",
        changes="budget.compute = 120\n\nalgorithm.no_positive_resampling = null\n",
        factors="optimizer.learning_rate = 1e-4, 1e-3\nalgorithm.loss=[cispo, dapo]",
        seeds="0-2, 7",
        policy="auto",
        sent=True,
    )
    assert composed.body() == {
        "name": "lrs",
        "recipe_id": "rec_1",
        "changes": {"budget.compute": 120, "algorithm.no_positive_resampling": None},
        "design": {
            "kind": "grid",
            "factors": {"optimizer.learning_rate": [1e-4, 1e-3], "algorithm.loss": ["cispo", "dapo"]},
            "seeds": [0, 1, 2, 7],
        },
        "policy": "auto",
    }


def test_a_run_has_no_design() -> None:
    composed = Composed(kind="run", changes="seed = 3", seeds="nonsense", factors="nonsense", sent=True)
    assert composed.body() == {"preset": "scalerl", "changes": {"seed": 3}}


def test_labels_are_those_of_what_is_made() -> None:
    composed = Composed(kind="run", tags=" paper,, for Monday ", note="\r\nwhy\r\nnot? ", sent=True)
    assert composed.body() == {"preset": "scalerl", "tags": ["paper", "for Monday"], "note": "why\nnot?"}
    assert shlex.split(as_command(composed.body()))[5:] == [
        "--tag",
        "paper",
        "--tag",
        "for Monday",
        "--note",
        "why\nnot?",
    ]


def test_every_text_that_cannot_be_read_is_told_at_once() -> None:
    composed = Composed(kind="one_factor", changes="nonsense", factors="also", seeds="x", sent=True)
    with pytest.raises(RecipeError) as error:
        composed.body()
    assert faults(error) == ["changes", "design.factors", "design.seeds"]
    with pytest.raises(RecipeError) as error:
        Composed(sent=True).body()
    assert faults(error) == ["design.ingredients"]


def test_a_field_that_is_given_twice_is_refused() -> None:
    with pytest.raises(RecipeError, match="stands twice"):
        changes_of("seed = 1\nseed = 2")
    with pytest.raises(RecipeError, match="stands twice"):
        factors_of("seed = 1, 2\nseed = 3")


@pytest.mark.parametrize("text", ["", " ", "a", "1.5", "-1", "3-1", "0-100", "1e2", "0,,x", "0-99, 100", "9" * 400])
def test_seeds_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(RecipeError, match=r"design\.seeds"):
        seeds_of(text)


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=20), st.sampled_from([",", ", ", " ", ";"]))
def test_seeds_come_as_they_were_written(seeds: list[int], between: str) -> None:
    assert seeds_of(between.join(map(str, seeds))) == seeds


@given(st.dictionaries(FIELDS, VALUES, max_size=4))
def test_changes_come_as_they_were_written(changes: dict[str, Any]) -> None:
    text = "\n".join(f"{field} = {yaml.safe_dump(value).splitlines()[0]}" for field, value in changes.items())
    assert changes_of(text) == changes


@given(st.dictionaries(FIELDS, VALUES, max_size=4), st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True))
def test_the_file_for_a_terminal_is_the_same_sweep(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any], seeds: list[int]
) -> None:
    design = {"kind": "one_factor", "factors": {"algorithm.loss": ["dapo", "gspo"]}, "seeds": seeds}
    body = {"name": "ä: {x}", "preset": "scalerl", "changes": changes, "design": design, "policy": "auto"}
    body |= {"tags": ["a: b", "c"], "note": "first\nsecond: {x}"}
    file = tmp_path_factory.mktemp("sweep") / "sweep.yaml"
    Path(file).write_text(as_command(body))
    assert sweep_request(file) == body


@given(st.dictionaries(FIELDS, VALUES, max_size=4))
def test_the_command_for_a_terminal_is_the_same_run(changes: dict[str, Any]) -> None:
    body = {"name": "it's a run", "preset": "dapo-qwen"} | ({"changes": changes} if changes else {})
    words = shlex.split(as_command(body))
    assert words[:5] == ["forecurve", "run", "submit", "--preset", "dapo-qwen"]
    sets = [words[at + 1] for at, word in enumerate(words) if word == "--set"]
    assert read_changes(sets) == changes
    assert words[-2:] == ["--name", "it's a run"]


def test_what_no_terminal_can_say_has_no_command() -> None:
    assert as_command({"recipe_id": "rec_1"}) == ""


@pytest.mark.parametrize(
    ("field", "kind", "control"),
    [
        ("design.seeds.2", "grid", "seeds"),
        ("design.ingredients", "leave_one_out", "ingredient"),
        ("design", "leave_one_out", "ingredient"),
        ("design", "grid", "factors"),
        ("design.factors.seed", "one_factor", "factors"),
        ("preset", "run", "base"),
        ("recipe_id", "run", "base"),
        ("name", "run", "name"),
        ("tags.1", "run", "tags"),
        ("note", "grid", "note"),
        ("budget.compute", "grid", "changes"),
        ("algorithm.los", "grid", "factors"),
        ("algorithm.los", "leave_one_out", "changes"),
    ],
)
def test_a_fault_is_marked_where_it_was_written(field: str, kind: Any, control: str) -> None:
    composed = Composed(kind=kind, factors="algorithm.los = dapo", changes="budget.compute = -1", sent=True)
    assert composed.control_of(field) == control
