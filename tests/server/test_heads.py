"""HEAD is answered wherever GET is, with its headers and without its body."""

from __future__ import annotations

from fastapi.testclient import TestClient

from tests.server.reporting import Headers, external_run


def test_head_is_answered_as_get_less_the_body(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers).run_id
    for path in ("/healthz", "/v1/runs", f"/v1/runs/{run}", "/openapi.json", "/v1/runs/run_none", "/v1/runs?x=1"):
        got, head = api.get(path, headers=headers["read"]), api.head(path, headers=headers["read"])
        assert (head.status_code, head.content) == (got.status_code, b""), path
        for name in ("content-type", "content-length"):
            assert head.headers[name] == got.headers[name], path
    assert api.head("/v1/runs").status_code == 401


def test_head_where_there_is_no_get_is_a_wrong_method(api: TestClient, headers: Headers) -> None:
    answer = api.head("/v1/sweeps:plan", headers=headers["read"])
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
