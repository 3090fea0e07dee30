"""Recipes and sweeps as a person gives them: a preset's name, a YAML or JSON file, `--set field=value`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import bad_input

if TYPE_CHECKING:
    from forecurve.recipes import Recipe

SWEEP_KEYS = ("name", "preset", "recipe", "recipe_id", "changes", "design", "policy", "budget_compute", "tags", "note")


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping in a YAML or JSON file."""
    from forecurve.recipes.given import read_yaml

    body = read_yaml(path)
    if body is None:
        raise bad_input(f"{path} is empty; it must be a mapping of fields to values")
    if not isinstance(body, dict):
        raise bad_input(f"{path} holds a {type(body).__name__}; it must be a mapping of fields to values")
    return body


def parse_changes(assignments: Sequence[str] | None) -> dict[str, Any]:
    """The `--set field=value` of a command; none given, none made."""
    from forecurve.recipes.given import read_changes

    return read_changes(assignments or ())


def load(source: str, assignments: Sequence[str] | None = None) -> Recipe:
    """A validated recipe from a preset's name or a file."""
    from forecurve.recipes import PRESETS, load_recipe, preset, with_changes
    from forecurve.recipes.errors import suggestion

    is_file = source not in PRESETS and (Path(source).exists() or source.endswith((".yaml", ".yml", ".json")))
    if not is_file and source not in PRESETS:
        raise bad_input(f"{source}: there is no such file, and no such preset{suggestion(source, list(PRESETS))}")
    recipe = load_recipe(read_mapping(Path(source))) if is_file else preset(source)
    changes = parse_changes(assignments)
    return with_changes(recipe, changes) if changes else recipe


def run_request(
    preset: str | None, file: Path | None, assignments: Sequence[str] | None, name: str | None
) -> dict[str, Any]:
    """The body of `POST /v1/runs`."""
    if (preset is None) == (file is None):
        raise bad_input("give either --preset NAME or --recipe FILE")
    body: dict[str, Any] = {"preset": preset} if preset else {"recipe": read_mapping(file)} if file else {}
    if changes := parse_changes(assignments):
        body["changes"] = changes
    if name:
        body["name"] = name
    return body


def sweep_request(file: Path) -> dict[str, Any]:
    """The body of `POST /v1/sweeps` from a sweep file; the service validates the rest."""
    from forecurve.recipes.errors import suggestion

    body = read_mapping(file)
    for key in body:
        if key not in SWEEP_KEYS:
            raise bad_input(f"{file}: {key}: unknown field{suggestion(str(key), list(SWEEP_KEYS))}")
    if "design" not in body:
        raise bad_input(f"{file}: design: is missing; the shortest is `design: {{kind: leave_one_out}}`")
    if isinstance(body.get("recipe"), str):
        body["recipe"] = read_mapping(file.parent / body["recipe"])
    return body
