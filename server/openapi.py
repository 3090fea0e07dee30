"""The API's description: `python -m server.openapi > docs/reference/openapi.json` renews the reviewed copy."""

from __future__ import annotations

import json
import sys
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from server.problems import MEDIA_TYPE, Fault, ProblemBody

_EVERYWHERE = {
    "401": "A token is needed",
    "403": "The token does not allow this",
    "422": "The request does not hold",
}
_OPEN = ("/healthz", "/readyz")
_TEMPLATE = "#/components/schemas/{model}"
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": _TEMPLATE.format(model="ProblemBody")}}}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
    "description": "Sent again with the same body, the request gives its first answer again and changes nothing.",
}


def describe(app: FastAPI) -> None:
    """Have `app` describe itself: its problems as problems, how to authenticate, and what every POST takes."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _schema(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _schema(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
    components = schema.setdefault("components", {})
    _, definitions = models_json_schema(
        [(ProblemBody, "serialization"), (Fault, "serialization")], ref_template=_TEMPLATE
    )
    models = components.setdefault("schemas", {})
    models.update(definitions["$defs"])
    for unused in ("HTTPValidationError", "ValidationError"):
        models.pop(unused, None)
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            _complete(path, method, operation)
    return schema


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    answers = operation["responses"]
    if path not in _OPEN:
        operation["security"] = [{"token": []}]
        answers.update({status: {"description": meaning} for status, meaning in _EVERYWHERE.items()})
        if method == "post":
            operation.setdefault("parameters", []).append(_KEY)
    for status in answers:
        if status >= "400":
            answers[status]["content"] = _PROBLEM
    operation["responses"] = dict(sorted(answers.items()))


def main() -> None:
    """Print the description of the API. No database is asked."""
    from server.app import create_api
    from server.settings import Settings

    app = create_api(Settings(DATABASE_URL="postgresql://nowhere/none"))
    json.dump(app.openapi(), sys.stdout, indent=1, ensure_ascii=False, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
