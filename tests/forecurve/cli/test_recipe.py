"""`forecurve recipe` works without a service and names what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from forecurve.recipes import SCALERL

from .conftest import Forecurve


def test_presets_are_listed_with_their_difference_from_scalerl(forecurve: Forecurve) -> None:
    listed = forecurve("recipe", "presets", "--json").json["items"]
    shown = forecurve("recipe", "presets")

    by_name = {item["name"]: item for item in listed}
    assert by_name["scalerl"]["changes"] == {}
    assert by_name["dapo-qwen"]["changes"]["algorithm.loss"] == "dapo"
    assert 'algorithm.loss="dapo"' in shown.out
    assert shown.code == 0


def test_a_recipe_is_shown_in_full_and_reads_back_as_the_same_recipe(forecurve: Forecurve, tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(forecurve("recipe", "show", "scalerl").out)

    again = forecurve("recipe", "show", file, "--json").json

    assert again["digest"] == SCALERL.digest
    assert again["recipe"] == SCALERL.to_dict()


def test_changes_are_applied_with_numbers_as_people_write_them(forecurve: Forecurve) -> None:
    changed = forecurve("recipe", "show", "--set", "optimizer.learning_rate=1e-3", "--set", "seed=7", "--json").json

    assert changed["recipe"]["optimizer"]["learning_rate"] == 0.001
    assert changed["recipe"]["seed"] == 7


def test_the_difference_of_two_recipes_is_by_field(forecurve: Forecurve) -> None:
    fields = forecurve("recipe", "diff", "scalerl", "dapo-qwen", "--json").json["fields"]

    assert fields["algorithm.loss"] == {"first": "cispo", "second": "dapo"}
    assert "no field differs" in forecurve("recipe", "diff", "dapo-qwen", "dapo-qwen").out
    table = forecurve("recipe", "diff", "scalerl", "dapo-qwen").out
    assert ["algorithm.no_positive_resampling", "0.9", "null"] in [line.split() for line in table.splitlines()]


def test_an_unknown_key_is_bad_input_with_field_and_way_out_on_one_line(forecurve: Forecurve, tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(yaml.safe_dump({"algorithm": {"los": "cispo"}, "batch": {"prompts_per_step": 0}}))

    result = forecurve("recipe", "validate", file)

    result.check_is_bad_input(
        ["algorithm.los = 'cispo': unknown field; did you mean `loss`?", "batch.prompts_per_step"]
    )


def test_an_error_commands_no_terminal_by_what_a_file_is_called_or_holds(forecurve: Forecurve, tmp_path: Path) -> None:
    recipe, missing = tmp_path / "r.yaml", tmp_path / "no\x1b[31m.yaml"
    recipe.write_text('"fo\\e[31mo": 1\n')
    for file in (recipe, missing):
        result = forecurve("recipe", "validate", str(file))
        assert result.code == 2
        assert "\ufffd[31m" in result.err
        assert "\x1b" not in result.err


def test_with_json_an_error_is_an_object_with_every_fault(forecurve: Forecurve, tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text("algorithm: {los: cispo}\n")

    result = forecurve("recipe", "validate", file, "--json")

    error = json.loads(result.err)
    assert result.code == 2
    assert error["errors"][0]["field"] == "algorithm.los"


def test_files_that_cannot_be_read_say_why(forecurve: Forecurve, tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("[1, 2]")
    (tmp_path / "broken.yaml").write_text("a: [")

    assert "it must be a mapping" in forecurve("recipe", "validate", tmp_path / "list.yaml").err
    assert "is no YAML" in forecurve("recipe", "validate", tmp_path / "broken.yaml").err
    assert "cannot be read" in forecurve("recipe", "validate", "missing.yaml").err
    assert "no such preset" in forecurve("recipe", "show", "scalrel").err
    assert forecurve("recipe", "show", "--set", "seed").code == 2


def test_a_sweep_s_file_is_no_recipe_and_an_empty_one_is_called_so(forecurve: Forecurve, tmp_path: Path) -> None:
    sweep, empty = tmp_path / "sweep.yaml", tmp_path / "empty.yaml"
    sweep.write_text("preset: scalerl\ndesign: {kind: leave_one_out}\n")
    empty.write_text("# to be written\n")

    for command in (["recipe", "validate", sweep], ["recipe", "diff", "scalerl", sweep]):
        forecurve(*command).check_is_bad_input(["design = {", "this is a sweep, no recipe; `forecurve sweep"])
    forecurve("recipe", "validate", empty).check_is_bad_input([f"{empty} is empty; it must be a mapping"])


def test_the_schema_is_json_that_a_recipe_fits(forecurve: Forecurve) -> None:
    schema = forecurve("recipe", "schema").json

    jsonschema.validate(forecurve("recipe", "show", "--json").json["recipe"], schema)
    assert forecurve("recipe", "schema", "--json").json == schema


def test_a_field_of_another_kind_is_bad_input_with_the_way_out(forecurve: Forecurve) -> None:
    result = forecurve("recipe", "show", "--set", "model.path=models/small")

    assert result.code == 2
    assert "belongs to kind huggingface, chosen by `model.kind`" in result.err


def test_what_is_neither_a_file_nor_a_preset_is_called_so(forecurve: Forecurve) -> None:
    ended = forecurve("recipe", "validate", "nofile")

    assert ended.code == 2
    assert "nofile: there is no such file, and no such preset; known here: dapo-qwen" in ended.err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("batch.prompts_per_step=0", "batch.prompts_per_step = 0: "),
        ("budget.compute=", "budget.compute: must be a number, and nothing was given"),
        ("algorithm.loss=null", "grpo, and nothing was given"),
    ],
)
def test_a_fault_is_told_with_its_value(forecurve: Forecurve, given: str, told: str) -> None:
    assert told in forecurve("recipe", "validate", "scalerl", "--set", given).err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch: {prompts_per_step: true}", "batch.prompts_per_step = True: must be a number"),
        ("batch: {prompts_per_step: '5'}", "batch.prompts_per_step = '5': must be a number"),
        ("optimizer: {learning_rate: true}", "optimizer.learning_rate = True: must be a number"),
        ("checkpoint: {keep_every: '7'}", "checkpoint.keep_every = '7': must be a number"),
        ("optimizer: {milestones: [{step: true, factor: 1}]}", "optimizer.milestones.0.step = True: must be a number"),
        ("batch: {prompts_per_step: 5}\nseed: 1\nbatch: {}", "`batch` stands twice; keep one"),
    ],
)
def test_a_recipe_s_file_is_taken_at_its_word(forecurve: Forecurve, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(text)

    ended = forecurve("recipe", "validate", file)

    assert ended.code == 2
    assert message in ended.err


def test_every_fault_of_a_section_is_told_at_once(forecurve: Forecurve, tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text("algorithm: {clip_low: x, clip_hi: 0.3, loss: none}\nbatch: {prompts_per_step: true, prompts: 3}")

    errors = json.loads(forecurve("recipe", "validate", file, "--json").err)["errors"]

    assert [(error["field"], error["value"]) for error in errors] == [
        ("algorithm.loss", "none"),
        ("algorithm.clip_low", "x"),
        ("algorithm.clip_hi", 0.3),
        ("batch.prompts_per_step", True),
        ("batch.prompts", 3),
    ]


def test_every_change_that_does_not_hold_is_told_with_its_value(forecurve: Forecurve) -> None:
    wrong = ("batch.prompts=3", "batch=4", "data.size=5", "budget.compute=-1", "budget.unt=steps", "budget.kind=x")
    ended = forecurve("recipe", "show", *(f"--set={one}" for one in (*wrong, "seed=1")))

    assert ended.code == 2
    assert "batch.prompts = 3: no such field in a recipe" in ended.err
    assert "batch = 4: is a section, not a field; its fields: prompts_per_step" in ended.err
    assert "budget.compute = -1: must be above 0" in ended.err
    for field in ("batch.prompts", "batch", "data.size", "budget.unt", "budget.kind"):
        assert ended.err.count(f"{field} = ") == 1
    assert "seed" not in ended.err.split("its fields")[0]


def test_numbers_in_a_file_are_those_of_a_change(forecurve: Forecurve, tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text("seed: 1e3\noptimizer: {learning_rate: 1e-4, warmup_steps: 5}\nevaluation: {every_steps: 2.0}")
    changes = ("seed=1e3", "optimizer.learning_rate=1e-4", "optimizer.warmup_steps=5", "evaluation.every_steps=2.0")
    flags = [part for change in changes for part in ("--set", change)]

    shown = forecurve("recipe", "show", file, "--json").json["recipe"]

    assert (shown["seed"], shown["optimizer"]["learning_rate"], shown["evaluation"]["every_steps"]) == (1000, 1e-4, 2)
    again = forecurve("recipe", "show", file, *flags, "--json").json["recipe"]
    assert again == shown
