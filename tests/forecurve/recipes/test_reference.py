"""The reference page and the JSON Schema in the repository are those of the code."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from forecurve.recipes import PRESETS, Recipe
from forecurve.recipes.paths import section_kinds, sections_in
from forecurve.recipes.reference import json_schema, main, page

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
RENEW = "run `make recipe-reference`"


def test_the_page_is_current() -> None:
    assert (REFERENCE / "recipe.md").read_text() == page(), RENEW


def test_the_json_schema_is_current() -> None:
    assert json.loads((REFERENCE / "recipe.schema.json").read_text()) == json_schema(), RENEW


def test_every_field_says_what_it_means() -> None:
    unexplained = [
        f"{section}.{name}"
        for section, info in Recipe.model_fields.items()
        for model in sections_in(info.annotation)
        for name, field in model.model_fields.items()
        if name != "kind" and not field.description
    ]
    assert unexplained == []
    assert all(model.__doc__ for info in Recipe.model_fields.values() for model in sections_in(info.annotation))


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_fits_the_json_schema(name: str) -> None:
    jsonschema.validate(PRESETS[name].to_dict(), json_schema())


def test_a_section_of_the_default_kind_need_not_say_so_and_another_must() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    assert set(section_kinds()) == {"task", "model", "length_control"}
    assert validator.is_valid({"task": {}, "model": {"width": 32}, "length_control": {}})
    assert not validator.is_valid({"length_control": {"longest": 24}})
    assert not validator.is_valid({"task": {"kind": "dataset"}})


def test_anything_else_than_schema_or_page_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pages"]) == 2
    assert "schema|page" in capsys.readouterr().err
