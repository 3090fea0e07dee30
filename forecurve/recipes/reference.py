"""The schema as others read it: JSON Schema for editors and programs, a page of every knob for people.

python -m forecurve.recipes.reference schema|page     prints docs/reference/recipe.schema.json or recipe.md
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from .paths import section_kinds, sections_in
from .schema import LearningRateMilestone, Recipe, Section

_PREAMBLE = """\
Written by `make recipe-reference` from `forecurve/recipes/schema`; change it there. A recipe is YAML or JSON: what it
does not name has its default, and an unknown name is refused. Section, equation and figure numbers are those of the
ScaleRL paper (arXiv 2510.13786). [conformance.md](../conformance.md) says what the trainer makes of each ingredient;
`forecurve recipe schema` prints the [JSON Schema](recipe.schema.json)."""

_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a recipe. It has every type, range and name; rules between fields are beyond it."""
    schema = Recipe.model_json_schema()
    for name, kinds in section_kinds().items():
        default = Recipe.model_fields[name].default.kind
        for kind, model in kinds.items():
            if kind != default:  # without a kind, the section is of the default one
                definition = schema["$defs"][model.__name__]
                definition["required"] = sorted({*definition.get("required", ()), "kind"})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def page() -> str:
    """The reference page, as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# The recipe, field by field"
    yield ""
    yield _PREAMBLE
    plain = [name for name, info in Recipe.model_fields.items() if not sections_in(info.annotation)]
    yield from _section("Top level", inspect.getdoc(Recipe) or "", Recipe, plain)
    for name, info in Recipe.model_fields.items():
        kinds = section_kinds().get(name)
        if kinds:
            yield from [
                "",
                f"## `{name}`",
                "",
                f"One of {len(kinds)}, by `{name}.kind`; `{info.default.kind}` if unnamed.",
            ]
            for kind, model in kinds.items():
                yield from _section(f"`{name}.kind: {kind}`", _text(model), model, list(model.model_fields)[1:], "###")
        else:
            for model in sections_in(info.annotation):
                yield from _section(f"`{name}`", _text(model), model, list(model.model_fields))
    yield from _section("A milestone", _text(LearningRateMilestone), LearningRateMilestone, ["step", "factor"])


def _section(title: str, text: str, model: type[Section], names: list[str], mark: str = "##") -> Iterator[str]:
    yield from ["", f"{mark} {title}", "", text]
    if names:
        yield from ["", "| field | takes | default | meaning |", "|---|---|---|---|"]
    for name in names:
        info = model.model_fields[name]
        yield f"| `{name}` | {_takes(info)} | {_default(info)} | {_meaning(info)} |"


def _meaning(info: FieldInfo) -> str:
    return (info.description or "").replace("|", "\\|")


def _text(model: type[Section]) -> str:
    return (inspect.getdoc(model) or "").strip()


def _takes(info: FieldInfo) -> str:
    return " ".join(filter(None, [_type(info.annotation), bounds(info)]))


def bounds(info: FieldInfo) -> str:
    """Where a field's numbers must lie, `≥ 1, ≤ 64`; empty where there is no limit."""
    return ", ".join(
        f"{sign} {getattr(limit, name):,}"
        for limit in info.metadata
        for name, sign in _BOUNDS.items()
        if getattr(limit, name, None) is not None
    )


def _type(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(annotation))
    if get_origin(annotation) is dict:
        return "mapping"
    if get_origin(annotation) is tuple:
        return "list"
    if hasattr(annotation, "__metadata__"):
        return _type(get_args(annotation)[0])
    if get_origin(annotation) is not None:
        return " or ".join("null" if part is type(None) else _type(part) for part in get_args(annotation))
    return {str: "text", int: "integer", float: "number", bool: "true, false"}[annotation]


def _default(info: FieldInfo) -> str:
    return "required" if info.is_required() else f"`{json.dumps(info.default)}`"


def main(arguments: list[str]) -> int:
    """Print the schema or the page."""
    if arguments not in (["schema"], ["page"]):
        print("usage: python -m forecurve.recipes.reference schema|page", file=sys.stderr)
        return 2
    print(
        json.dumps(json_schema(), indent=2) if arguments == ["schema"] else page(), end="\n" * (arguments == ["schema"])
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
