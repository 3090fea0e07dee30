"""A recipe field by field, in its sections, beside the one that it is held against; and parameters, which have none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Field = tuple[str, Any, Any]
_LONGEST = 300


def recipe_sections(body: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> list[tuple[str, list[Field]]]:
    """The recipe as (section, [(field, value, the other's value where it differs)]); empty for a run without one."""
    if body is None:
        return []
    base = other or body
    single = {name: value for name, value in body.items() if not isinstance(value, Mapping)}
    sections: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = [("recipe", single, base)]
    sections += [(name, value, base.get(name, {})) for name, value in body.items() if isinstance(value, Mapping)]
    return [(name, [_field(*item, was) for item in fields.items()]) for name, fields, was in sections]


def _field(name: str, value: Any, other: Mapping[str, Any]) -> Field:
    was = other.get(name, value)
    return name, value, None if was == value else was


def parameter_sections(params: Mapping[str, str]) -> list[tuple[str, list[Field]]]:
    """Parameters that a trainer named as it likes, `actor.optim.lr` or `actor/optim/lr`, by what their names begin
    with; first those whose names have one part."""
    sections: dict[str, list[Field]] = {"": []}
    for name, value in sorted(params.items()):
        section, _, field = name.replace(".", "/").partition("/")
        sections.setdefault(section if field else "", []).append((field or name, _short(value), None))
    return [(section, fields) for section, fields in sections.items() if fields]


def _short(value: str) -> str:
    """Of a list of a thousand files the first are enough."""
    return value if len(value) <= _LONGEST else f"{value[:_LONGEST]}… ({len(value):,} characters)"
