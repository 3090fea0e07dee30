"""What a person gives on a command line: a YAML or JSON file, `field=value`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from .errors import RecipeError


def read_yaml(path: Path) -> Any:
    """What a YAML or JSON file holds (JSON is YAML).

    Raises:
        RecipeError: no such file, or it is neither.
    """
    try:
        return yaml.safe_load(path.read_text())
    except OSError as error:
        raise RecipeError.one(str(path), str(path), f"cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RecipeError.one(str(path), str(path), f"is no YAML: {' '.join(str(error).split())}") from None


def read_changes(assignments: Iterable[str]) -> dict[str, Any]:
    """`["optimizer.learning_rate=1e-3"]` as `{"optimizer.learning_rate": 0.001}`; values are YAML.

    Raises:
        RecipeError: no `field=value`, or a value that is no YAML.
    """
    return dict(map(_change, assignments))


def _change(assignment: str) -> tuple[str, Any]:
    path, sign, text = assignment.partition("=")
    if not sign or not path.strip():
        raise RecipeError.one("--set", assignment, "write it as field=value, such as optimizer.learning_rate=0.001")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise RecipeError.one("--set", assignment, f"`{text}` is no YAML value") from None
    return path.strip(), _number_or(value)


def _number_or(value: Any) -> Any:
    """YAML 1.1 takes `1e-3` for text; a person means the number."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
