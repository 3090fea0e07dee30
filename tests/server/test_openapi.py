"""The API's description is a product: it changes only on purpose."""

from __future__ import annotations

import json
from pathlib import Path

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
    for path, operations in application.openapi()["paths"].items():
        for method, operation in operations.items():
            errors = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
            if path.startswith("/v1"):
                assert {"401", "403", "422"} <= set(errors), (method, path)
                assert operation["security"], (method, path)
            for answer in errors.values():
                assert list(answer["content"]) == ["application/problem+json"], (method, path)


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
