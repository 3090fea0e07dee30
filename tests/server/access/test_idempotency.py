"""`Idempotency-Key`: a POST sent again gives its first answer again and changes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from server.access.models import IdempotencyKey, Token
from server.runs.models import Run
from tests.server.reporting import Headers, faults

Sessions = sessionmaker[Session]

EXTERNAL = {"executor": "external", "compute_unit": "steps"}


def _runs(sessions: Sessions) -> int:
    with sessions() as session:
        return session.scalar(select(func.count()).select_from(Run)) or 0


def test_the_same_key_and_body_give_the_first_answer_again(
    api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    keyed = headers["operate"] | {"Idempotency-Key": "one"}
    first = api.post("/v1/runs", json=EXTERNAL, headers=keyed)
    again = api.post("/v1/runs", json=EXTERNAL, headers=keyed)
    assert (again.status_code, again.content) == (201, first.content), "the shown-once token too"
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert _runs(sessions) == 1
    assert api.post("/v1/runs", json=EXTERNAL, headers=headers["operate"]).json()["id"] != first.json()["id"]


def test_another_body_or_path_under_the_same_key_is_409(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    keyed = headers["operate"] | {"Idempotency-Key": "one"}
    api.post("/v1/runs", json=EXTERNAL, headers=keyed)
    for path, body in (("/v1/runs", EXTERNAL | {"name": "x"}), ("/v1/recipes", {"preset": "scalerl"})):
        answer = api.post(path, json=body, headers=keyed)
        assert answer.status_code == 409
        assert "new key" in faults(answer)["Idempotency-Key"]
    assert _runs(sessions) == 1


def test_keys_of_two_tokens_do_not_meet(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    for scope in ("operate", "admin"):
        answer = api.post("/v1/runs", json=EXTERNAL, headers=headers[scope] | {"Idempotency-Key": "one"})
        assert "idempotency-replayed" not in answer.headers
    assert _runs(sessions) == 2


def test_an_error_is_not_remembered(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    keyed = headers["operate"] | {"Idempotency-Key": "one"}
    bad = {"executor": "external", "recipe_id": "rec_nowhere"}
    assert api.post("/v1/runs", json=bad, headers=keyed).status_code == 404
    with sessions() as session:
        assert session.scalar(select(func.count()).select_from(IdempotencyKey)) == 0
    assert api.post("/v1/runs", json=EXTERNAL, headers=keyed).status_code == 201


def test_duplicates_at_the_same_time_make_one_run(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    keyed = headers["operate"] | {"Idempotency-Key": "one"}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: api.post("/v1/runs", json=EXTERNAL, headers=keyed), range(8)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert sorted("idempotency-replayed" in answer.headers for answer in answers) == [False] + [True] * 7
    assert _runs(sessions) == 1


def test_secrets_are_not_stored_in_clear(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    keyed = headers["operate"] | {"Idempotency-Key": "one"}
    secret = api.post("/v1/runs", json=EXTERNAL, headers=keyed).json()["ingest_token"]
    with sessions() as session:
        stored = session.scalars(select(IdempotencyKey)).one()
        assert stored.status == 201
        assert secret.encode() not in stored.body
        assert b"run_" not in stored.body
        assert all(secret not in str(vars(token)) for token in session.scalars(select(Token)))


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb"])
def test_a_bad_key_is_named(key: str, api: TestClient, headers: Headers) -> None:
    answer = api.post("/v1/runs", json=EXTERNAL, headers=headers["operate"] | {"Idempotency-Key": key})
    assert answer.status_code == 422
    assert "Idempotency-Key" in faults(answer)


@pytest.mark.parametrize("path", ["/v1/channels", "/v1/recipes", "/v1/sweeps", "/v1/tokens"])
def test_every_room_honours_the_key(path: str, api: TestClient, headers: Headers) -> None:
    bodies = {
        "/v1/channels": {"name": "x", "kind": "webhook", "url": "https://example.com/hook"},
        "/v1/recipes": {"preset": "scalerl"},
        "/v1/sweeps": {"preset": "scalerl", "design": {"kind": "leave_one_out"}},
        "/v1/tokens": {"name": "x", "scopes": ["read"]},
    }
    keyed = headers["admin"] | {"Idempotency-Key": "one"}
    first, again = (api.post(path, json=bodies[path], headers=keyed) for _ in range(2))
    assert first.status_code == 201, first.text
    assert (again.status_code, again.content) == (201, first.content)
