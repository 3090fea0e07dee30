"""What holds for every valid recipe, of whatever kinds."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve.recipes import SCALERL, Recipe, RecipeError, diff, get_value, leaf_paths, load_recipe, with_changes
from forecurve.recipes.reference import json_schema

from .strategies import bodies, recipes

SCHEMA = jsonschema.Draft202012Validator(json_schema())
few = settings(max_examples=60, deadline=None)


@few
@given(bodies())
def test_it_survives_the_trip_through_json_with_its_digest(body: dict[str, Any]) -> None:
    recipe = load_recipe(body)
    again = load_recipe(json.loads(json.dumps(recipe.to_dict())))
    assert again == recipe
    assert again.digest == recipe.digest == load_recipe(body).digest


@few
@given(recipes, recipes)
def test_no_difference_means_equal_and_equal_means_no_difference(first: Recipe, second: Recipe) -> None:
    assert (diff(first, second) == {}) == (first.digest == second.digest) == (diff(second, first) == {})


@few
@given(recipes, recipes)
def test_the_difference_leads_from_one_to_the_other(first: Recipe, second: Recipe) -> None:
    changes = {path: theirs for path, (_, theirs) in diff(first, second).items()}
    assert with_changes(first, changes).digest == second.digest


@few
@given(recipes, st.data())
def test_every_field_of_the_difference_is_needed(other: Recipe, data: st.DataObject) -> None:
    changes = {path: theirs for path, (_, theirs) in diff(SCALERL, other).items()}
    if not changes:
        return
    left_out = data.draw(st.sampled_from(sorted(changes)))
    try:
        reached = with_changes(SCALERL, {path: value for path, value in changes.items() if path != left_out})
    except RecipeError:
        return  # without it the others do not even hold together
    assert reached.digest != other.digest


@few
@given(recipes)
def test_it_has_exactly_the_fields_of_its_kinds(recipe: Recipe) -> None:
    own = leaf_paths(recipe)
    assert len(own) == len(set(own))
    assert set(own) <= set(leaf_paths())
    for path in own:
        assert with_changes(recipe, {path: get_value(recipe, path)}) == recipe
    for path in set(leaf_paths()) - set(own):
        with pytest.raises(RecipeError, match=rf"belongs to {path.partition('.')[0]}\.kind"):
            get_value(recipe, path)


@few
@given(bodies())
def test_the_json_schema_takes_it_and_refuses_an_unknown_name_in_any_section(body: dict[str, Any]) -> None:
    SCHEMA.validate(body)
    SCHEMA.validate(load_recipe(body).to_dict())
    for section, fields in body.items():
        if isinstance(fields, dict):
            assert not SCHEMA.is_valid(body | {section: fields | {"unheard_of": 1}})
