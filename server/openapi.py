"""The API's description: `python -m server.openapi > docs/reference/openapi.json` renews the reviewed copy."""

from __future__ import annotations

import json
import sys
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from forecurve.recipes.designs import Grid, LeaveOneOut, OneFactor
from server.access.idempotency import LONGEST
from server.openapi_answers import add_answers
from server.openapi_answers import components as answers
from server.openapi_examples import EXAMPLES
from server.problems import Fault, ProblemBody

_DESIGNS = (LeaveOneOut, OneFactor, Grid)
_OPEN = ("/healthz", "/readyz")
_TEMPLATE = "#/components/schemas/{model}"
_MEANT = {
    "alert_id": "Id of an alert.",
    "arm": "Name of an arm, as its sweep names it.",
    "channel_id": "Id of a channel.",
    "control": "Id of the run whose arm the others are compared with.",
    "delivery_id": "Id of a delivery.",
    "forecast_id": "Id of a forecast.",
    "kind": "Only tokens of this kind.",
    "recipe_id": "Id of a recipe.",
    "recommendation_id": "Id of a recommendation.",
    "run_id": "Id of a run.",
    "status": "Only those of this status.",
    "sweep_id": "Id of a sweep.",
    "token_id": "Id of a token; not its secret.",
}
"""What a parameter is, where the endpoint does not say more."""
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST, "pattern": "^[ -~]+$"},
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
        [(ProblemBody, "serialization"), (Fault, "serialization"), *((kind, "validation") for kind in _DESIGNS)],
        ref_template=_TEMPLATE,
    )
    models = components.setdefault("schemas", {})
    models.update(definitions["$defs"])
    for unused in ("HTTPValidationError", "ValidationError"):
        models.pop(unused, None)
    for name in ("SweepPlanRequest", "SweepCreate"):  # a plain mapping to the service, whose designs are judged apart
        models[name]["properties"]["design"]["oneOf"] = [{"$ref": _TEMPLATE.format(model=k.__name__)} for k in _DESIGNS]
    for name, examples in EXAMPLES.items():
        models[name]["examples"] = examples
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    components["responses"] = answers()
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            _complete(path, method, operation)
    return schema


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    if path not in _OPEN:
        operation["security"] = [{"token": []}]
        if method == "post":
            operation.setdefault("parameters", []).append(_KEY)
    for parameter in operation.get("parameters", []):
        if parameter["name"] in _MEANT:
            parameter.setdefault("description", _MEANT[parameter["name"]])
        parameter["schema"] = schema = _without_null(parameter["schema"])
        if parameter["in"] == "path":
            schema["minLength"] = 1
        parameter["required"] = parameter["required"] or "minItems" in schema  # refused in better words than FastAPI's
    add_answers(path, method, operation)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Of a parameter that may be left out: an address has no way to say null."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"]
    if len(kinds) != 1:
        return schema
    merged: dict[str, Any] = kinds[0] | {name: value for name, value in schema.items() if name != "anyOf"}
    return merged


def main() -> None:
    """Print the description of the API. No database is asked."""
    from server.app import create_api
    from server.settings import Settings

    app = create_api(Settings(DATABASE_URL="postgresql://nowhere/none"))
    json.dump(app.openapi(), sys.stdout, indent=1, ensure_ascii=False, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
