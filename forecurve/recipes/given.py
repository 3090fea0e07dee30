"""What a person gives on a command line: a YAML or JSON file, `field=value`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from .errors import RecipeError


class _Loader(yaml.SafeLoader):
    """YAML as a person means it, with what JSON has and no more (as in YAML 1.2): `1e-4` is a number, `2026-01-01` is
    text, and no name stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """See SafeLoader, which lets the last of two equal names win."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise ConstructorError(None, None, f"`{key.value}` stands twice; keep one", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$"), list("-+.0123456789")
)


_TIME = "tag:yaml.org,2002:timestamp"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != _TIME]
    for first, known in _Loader.yaml_implicit_resolvers.items()
}


def _refused(loader: _Loader, node: yaml.Node) -> Any:
    raise ConstructorError(None, None, f"{node.tag.rpartition(':')[2]} is nothing that a recipe has", node.start_mark)


for _kind in ("binary", "omap", "pairs", "set", "timestamp"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _refused)


class _Value(_Loader):
    """A value on one line: a name for a part of it would be no more than a way to make gigabytes of a few letters."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """See SafeLoader."""
        if self.check_event(yaml.AliasEvent):
            raise ConstructorError(None, None, "a value has no aliases", parent.start_mark if parent else None)
        return super().compose_node(parent, index)


def _parsed(text: str, loader: type[_Loader] = _Loader) -> Any:
    """YAMLError for whatever cannot be made of it."""
    try:
        return yaml.load(text, Loader=loader)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or lists in lists without end
        raise yaml.YAMLError(f"it holds what cannot be taken ({type(error).__name__})") from None


def read_yaml(path: Path) -> Any:
    """What a YAML or JSON file holds (JSON is YAML).

    Raises:
        RecipeError: no such file, or it is neither.
    """
    try:
        return _parsed(path.read_text())
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
        value = _parsed(text, _Value)
    except yaml.YAMLError:
        raise RecipeError.one("--set", assignment, f"`{text}` is no YAML value") from None
    return path.strip(), value
