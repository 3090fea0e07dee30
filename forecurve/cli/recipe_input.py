"""Recipes and sweeps as a person gives them: a preset's name, a YAML or JSON file, `--set field=value`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import bad_input

if TYPE_CHECKING:
    from forecurve.recipes import Recipe

SWEEP_KEYS = ("name", "preset", "recipe", "recipe_id", "changes", "design", "policy")


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping in a YAML or JSON file (JSON is YAML)."""
    import yaml

    try:
        body = yaml.safe_load(path.read_text())
    except OSError as error:
        raise bad_input(f"{path} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise bad_input(f"{path} is no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(body, dict):
        raise bad_input(f"{path} holds a {type(body).__name__}; it must be a mapping of fields to values")
    return body


def parse_changes(assignments: Sequence[str] | None) -> dict[str, Any]:
    """`["optimizer.learning_rate=1e-3"]` as `{"optimizer.learning_rate": 0.001}`; values are YAML."""
    import yaml

    changes: dict[str, Any] = {}
    for assignment in assignments or ():
        path, sign, text = assignment.partition("=")
        if not sign or not path:
            raise bad_input(f"--set {assignment}: write it as field=value, such as --set optimizer.learning_rate=0.001")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            raise bad_input(f"--set {assignment}: `{text}` is no YAML value") from None
        changes[path.strip()] = _number_or(value)
    return changes


def load(source: str, assignments: Sequence[str] | None = None) -> Recipe:
    """A validated recipe from a preset's name or a file."""
    from forecurve.recipes import PRESETS, load_recipe, preset, with_changes

    is_file = source not in PRESETS and (Path(source).exists() or source.endswith((".yaml", ".yml", ".json")))
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


def _number_or(value: Any) -> Any:
    """YAML 1.1 takes `1e-3` for text; a person means the number."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value
