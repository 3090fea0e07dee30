"""The page of the API's reference."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.testclient import TestClient


def test_the_reference_page_has_every_operation_of_the_api(app: FastAPI, site: TestClient) -> None:
    html = site.get("/docs").text
    expected = sum(len(methods) for methods in app.openapi()["paths"].values())
    assert html.count("<summary>") == expected > 30
    for path in app.openapi()["paths"]:
        assert f"<code>{path}</code>" in html


def test_pages_are_no_part_of_the_described_api(app: FastAPI) -> None:
    described = [path for path in app.openapi()["paths"] if not path.startswith("/v1")]
    assert sorted(described) == ["/healthz", "/readyz"]
