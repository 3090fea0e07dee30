"""The API's description is a product: it changes only on purpose."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
from fastapi import FastAPI

SNAPSHOT = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"


def test_the_description_is_the_reviewed_one(application: FastAPI) -> None:
    reviewed = json.loads(SNAPSHOT.read_text())
    now = json.loads(json.dumps(application.openapi()))
    changed = sorted(
        {path for path in {*reviewed["paths"], *now["paths"]} if reviewed["paths"].get(path) != now["paths"].get(path)}
        | {
            name
            for name in {*reviewed["components"]["schemas"], *now["components"]["schemas"]}
            if reviewed["components"]["schemas"].get(name) != now["components"]["schemas"].get(name)
        }
    )
    renew = "review the change, then run `make openapi`"
    assert not changed, f"the API's description changed in {', '.join(changed)}: {renew}"
    assert now == reviewed, renew


def test_every_error_is_described_as_a_problem(application: FastAPI) -> None:
    described = application.openapi()
    answers = described["components"]["responses"]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            errors = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
            if path.startswith("/v1"):
                assert {"401", "403", "422", "500", "503"} <= set(errors), (method, path)
                assert operation["security"], (method, path)
            if method == "post":
                assert "409" in errors, path  # a key that was used for another request
            for status, error in errors.items():
                answer = answers[error["$ref"].rpartition("/")[2]]
                assert answer["content"]["application/problem+json"]["example"]["status"] == int(status)


def test_every_parameter_says_what_it_is(application: FastAPI) -> None:
    silent = [
        f"{method} {path} {parameter['name']}"
        for path, operations in application.openapi()["paths"].items()
        for method, operation in operations.items()
        for parameter in operation.get("parameters", ())
        if not parameter.get("description")
    ]
    assert silent == []


def test_every_body_has_examples_that_hold(application: FastAPI) -> None:
    described = application.openapi()
    schemas = described["components"]["schemas"]
    for path, operations in described["paths"].items():
        for operation in operations.values():
            if "requestBody" not in operation:
                continue
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            (name,) = re.findall(r"#/components/schemas/(\w+)", json.dumps(schema))
            assert schemas[name].get("examples"), (path, name)
            for example in schemas[name]["examples"]:
                jsonschema.validate(example, {**schemas[name], "components": described["components"]})


def test_every_post_takes_an_idempotency_key(application: FastAPI) -> None:
    for path, operations in application.openapi()["paths"].items():
        names = [parameter["name"] for parameter in operations.get("post", {}).get("parameters", [])]
        assert ("Idempotency-Key" in names) is ("post" in operations), path


def test_every_operation_says_what_it_does(application: FastAPI) -> None:
    silent = [
        f"{method} {path}"
        for path, operations in application.openapi()["paths"].items()
        for method, operation in operations.items()
        if not operation.get("description")
    ]
    assert silent == []
