"""`forecurve recipe` works without a service and names what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
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


def test_an_unknown_key_is_bad_input_with_field_and_way_out_on_one_line(forecurve: Forecurve, tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(yaml.safe_dump({"algorithm": {"los": "cispo"}, "batch": {"prompts_per_step": 0}}))

    result = forecurve("recipe", "validate", file)

    assert result.code == 2
    assert result.out == ""
    assert len(result.err.strip().splitlines()) == 1
    assert "algorithm.los: unknown field; did you mean `loss`?" in result.err
    assert "batch.prompts_per_step" in result.err


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


def test_the_schema_is_json_that_a_recipe_fits(forecurve: Forecurve) -> None:
    schema = forecurve("recipe", "schema").json

    jsonschema.validate(forecurve("recipe", "show", "--json").json["recipe"], schema)
    assert forecurve("recipe", "schema", "--json").json == schema


def test_a_field_of_another_kind_is_bad_input_with_the_way_out(forecurve: Forecurve) -> None:
    result = forecurve("recipe", "show", "--set", "model.path=models/small")

    assert result.code == 2
    assert "belongs to kind huggingface, chosen by `model.kind`" in result.err
