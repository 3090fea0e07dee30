"""The API in one page, read from its own OpenAPI description; nothing is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from web.page import AnyPage

router = APIRouter(include_in_schema=False)
_METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Operation:
    """One method of one path: what it does, what may be sent, what it answers."""

    method: str
    path: str
    room: str
    title: str  # the first sentence of its description
    rest: str
    parameters: list[tuple[str, str, str]]  # name, where, type
    body: str | None
    answers: list[tuple[str, str, str]]  # status, meaning, type


@router.get("/docs")
def show_reference(page: AnyPage) -> HTMLResponse:
    operations = list(_operations(page.request.app.openapi()))
    rooms = list(dict.fromkeys(operation.room for operation in operations))
    by_room = [(room, [operation for operation in operations if operation.room == room]) for room in rooms]
    return page.render("reference.html", rooms=by_room)


def _operations(schema: Mapping[str, Any]) -> Iterator[Operation]:
    for path, methods in schema["paths"].items():
        for method in (name for name in _METHODS if name in methods):
            said = methods[method]
            title, _, rest = said.get("description", "").partition("\n\n")
            yield Operation(
                method=method.upper(),
                path=path,
                room=(said.get("tags") or ["service"])[0],
                title=title or said.get("summary", ""),
                rest=rest,
                parameters=[(p["name"], p["in"], _type(p.get("schema", {}))) for p in said.get("parameters", [])],
                body=_content_type(said.get("requestBody", {})),
                answers=[
                    (status, a.get("description", ""), _content_type(a) or "")
                    for status, a in said["responses"].items()
                ],
            )


def _content_type(holder: Mapping[str, Any]) -> str | None:
    contents = holder.get("content", {})
    return next((_type(content.get("schema", {})) for content in contents.values()), None)


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in a few words: the name of a component, a list of it, a choice, a JSON type."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return " or ".join(_type(option) for option in schema[choice])
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
