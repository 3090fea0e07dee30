"""Whatever goes wrong, the answer is a problem that can be read, traced and acted on."""

from __future__ import annotations

import gzip
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, sessionmaker

from server.app import ROOMS
from server.bodies import Body
from server.problems import shown
from server.request_id import RequestIdFilter
from tests.server.reporting import Headers, bearer, evaluation, external_run, faults


def test_an_unknown_path_is_a_problem(api: TestClient, headers: Headers) -> None:
    answer = api.get("/v1/no-such-thing", headers=headers["read"])
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert answer.headers["content-type"] == "application/problem+json"
    assert "/v1/no-such-thing" in answer.json()["detail"]


def test_a_wrong_method_is_a_problem(api: TestClient, headers: Headers) -> None:
    answer = api.delete("/v1/runs", headers=headers["read"])
    assert (answer.status_code, answer.json()["status"]) == (405, 405)
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_wrong_method_says_which_are_right(api: TestClient, headers: Headers) -> None:
    allowed = {"/v1/runs": "GET, POST", "/v1/runs/run_x": "GET, PATCH", "/v1/runs/run_x:stop": "POST"}
    for path, methods in allowed.items():
        answer = api.put(path, headers=headers["admin"])
        assert (answer.status_code, answer.headers["allow"]) == (405, methods), path
        assert methods in answer.json()["detail"]


def test_a_slash_too_many_is_no_address_and_leads_nowhere(api: TestClient, headers: Headers) -> None:
    """A redirect would name the scheme and host that reach the process, which are not those of its users."""
    for path in ("/v1/runs/", "/v1/runs/run_x/", "/v1/runs/run_x/metrics/"):
        for method in ("GET", "POST"):
            answer = api.request(method, path, headers=headers["admin"], follow_redirects=False)
            assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
            assert f"{path[:-1]} is without a slash at its end" in answer.json()["detail"]
    assert "/openapi.json" in api.get("/v1/no-such-thing/", headers=headers["read"]).json()["detail"]


DOORS_WITHOUT_A_BODY = ("/v1/runs/{run}:resume", "/v1/runs/{run}:archive", "/v1/runs/{run}:restore")


@pytest.mark.parametrize("door", DOORS_WITHOUT_A_BODY)
def test_a_body_that_nothing_reads_is_refused(door: str, api: TestClient, headers: Headers) -> None:
    path = door.format(run=external_run(api, headers).run_id)
    answer = api.post(path, json={"reason": "the node is back"}, headers=headers["operate"])
    assert (answer.status_code, list(faults(answer))) == (422, ["body"])
    assert f"POST {path} takes no body" in answer.json()["detail"]
    for nothing in (b"", b" {}\n"):
        assert api.post(path, content=nothing, headers=headers["operate"]).status_code in (200, 409)


def test_a_verb_that_is_none_is_not_taken_for_part_of_an_id(api: TestClient, headers: Headers) -> None:
    assert "/openapi.json" in api.post("/v1/runs/run_x:halt", headers=headers["admin"]).json()["detail"]
    assert api.get("/v1/runs/run_x:stop", headers=headers["admin"]).status_code == 405


def test_what_is_sent_forges_no_line_of_the_log(
    api: TestClient, headers: Headers, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "server.problems"):
        api.get("/v1/runs", params={"cursor": "x", "arm\n2026 INFO server\x1b[2J": "1"}, headers=headers["read"])
        api.get("/v1/nowhere%0A2026%20INFO%20server%1B[2J", headers=headers["read"])
    assert len(caplog.messages) == 2
    assert all(message.isprintable() for message in caplog.messages)


def test_the_request_id_is_in_body_header_and_log(
    api: TestClient, headers: Headers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.addFilter(RequestIdFilter())
    with caplog.at_level(logging.DEBUG, "server"):
        answer = api.get("/v1/runs/run_nowhere", headers=headers["read"])
    request_id = answer.json()["request_id"]
    assert answer.headers["x-request-id"] == request_id
    ours = [record for record in caplog.records if getattr(record, "request_id", "-") == request_id]
    assert {record.name for record in ours} == {"server.problems", "server.requests"}
    good = api.get("/v1/runs", headers=headers["read"])
    assert good.headers["x-request-id"] not in ("", request_id)


def test_an_error_of_ours_is_500_with_the_id_that_the_log_has(
    application: FastAPI, headers: Headers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import server.runs.endpoints as endpoints

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a secret of ours")

    monkeypatch.setattr(endpoints.service, "list_runs", broken)
    caplog.handler.addFilter(RequestIdFilter())
    with TestClient(application, raise_server_exceptions=False) as api:
        answer = api.get("/v1/runs", headers=headers["read"])
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert answer.headers["x-request-id"] == answer.json()["request_id"]
    failed = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert {getattr(record, "request_id", None) for record in failed} == {answer.json()["request_id"]}


def test_an_error_of_the_database_has_no_values_of_its_statement(sessions: sessionmaker[Session]) -> None:
    """It goes to the log, and what was to be stored may be a secret."""
    with sessions() as session, pytest.raises(DBAPIError) as raised:
        session.execute(text("SELECT 1 / 0, :secret"), {"secret": "whsec_abc"})
    assert "division by zero" in str(raised.value)
    assert "whsec_abc" not in str(raised.value)


def _served_without_a_database(path: str) -> tuple[str, str]:
    """The id of a request to a process of its own, and its log."""
    code = (
        "from fastapi.testclient import TestClient\n"
        "from server.app import create_api\n"
        f"print(TestClient(create_api()).get({path!r}).headers['x-request-id'])\n"
    )
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"DATABASE_URL": "postgresql://nobody:hunter2@127.0.0.1:9/none", "PYTHONPATH": root}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip(), done.stderr


def test_a_process_that_serves_writes_the_id_into_its_log() -> None:
    request_id, log = _served_without_a_database("/v1/nowhere")
    assert f"[{request_id}] 404 not-found" in log


def test_a_database_that_is_away_is_one_line_of_the_log_for_each_request() -> None:
    request_id, log = _served_without_a_database("/readyz")
    ours = [line for line in log.splitlines() if request_id in line]
    assert "Traceback" not in log
    assert any("GET /readyz: The database does not answer right now" in line for line in ours)
    assert any("port 9 failed" in line for line in ours)
    assert "hunter2" not in log


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not JSON"),
        (b"", "send a JSON object"),
        (b"[]", "send a JSON object"),
        (b'"x"', "send a JSON object"),
    ],
)
def test_what_is_no_json_object_is_named(content: bytes, message: str, api: TestClient, headers: Headers) -> None:
    answer = api.post("/v1/runs", content=content, headers=headers["operate"] | {"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert message in faults(answer)["body"]


def test_a_missing_content_type_says_what_to_send(api: TestClient, headers: Headers) -> None:
    answer = api.post("/v1/runs", content=b"{}", headers=headers["operate"] | {"Content-Type": "text/plain"})
    assert answer.status_code == 422
    assert "Content-Type: application/json" in faults(answer)["body"]


@pytest.mark.parametrize("unstorable", ["a\x00b", "\ud800"])
def test_text_that_postgres_cannot_store_is_refused(unstorable: str, api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers)
    bodies = {
        f"/v1/runs/{run.run_id}/heartbeat": ({"attempt": 1, "message": unstorable}, bearer(run.token)),
        "/v1/runs": ({"executor": "external", "compute_unit": "steps", "name": unstorable}, headers["operate"]),
        "/v1/tokens": ({"name": unstorable, "scopes": ["read"]}, headers["admin"]),
    }
    for path, (body, header) in bodies.items():
        content = json.dumps(body).encode()
        answer = api.post(path, content=content, headers=header | {"Content-Type": "application/json"})
        assert answer.status_code == 422, (path, answer.text)
        assert list(faults(answer)) == [next(name for name, value in body.items() if value == unstorable)]


@pytest.mark.parametrize("path", ["/v1/runs?arm=%00", "/v1/runs/a%00b", "/v1/runs:curves?run_id=a%00&run_id=b"])
def test_text_in_an_address_that_postgres_cannot_store_is_refused(path: str, api: TestClient, headers: Headers) -> None:
    answer = api.get(path, headers=headers["read"])
    assert answer.status_code == 422
    assert "NUL" in "".join(faults(answer).values())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"recipe": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"recipe": ' + b"1" * 5000 + b"}", "4300 digits"),
        (b'{"recipe": "\xff"}', "UTF-8"),
    ],
)
def test_json_that_cannot_be_read_is_refused(content: bytes, message: str, api: TestClient, headers: Headers) -> None:
    answer = api.post("/v1/runs", content=content, headers=headers["operate"] | {"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert message in faults(answer)["body"]


def test_a_body_that_is_compressed_is_refused_as_such(api: TestClient, headers: Headers) -> None:
    sent = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = api.post("/v1/runs", content=gzip.compress(b'{"preset": "scalerl"}'), headers=headers["operate"] | sent)
    assert answer.status_code == 422
    assert faults(answer)["body"] == "comes with `Content-Encoding: gzip`, which is not taken; send it uncompressed"


def test_what_cannot_be_read_back_is_an_error_of_ours(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session]
) -> None:
    run = external_run(api, headers)
    assert run.send(1, evaluation(1)).status_code == 200
    with sessions.begin() as session:
        session.execute(text("UPDATE evaluations SET time = 'infinity'"))
    answer = api.get(f"/v1/runs/{run.run_id}/evaluations", headers=headers["read"])
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert answer.json()["request_id"] in answer.headers["x-request-id"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300) | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=20), inner, max_size=5),
    max_leaves=20,
)


@given(JSON)
def test_a_shown_value_is_short_json(value: Any) -> None:
    text = json.dumps(shown(value), allow_nan=False).encode()
    assert len(text) < 4000 or isinstance(value, int)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=JSON.filter(lambda value: not isinstance(value, bytes)))
def test_no_body_makes_the_server_fail(body: Any, api: TestClient, headers: Headers) -> None:
    content = json.dumps(body, default=repr).encode()
    header = headers["operate"] | {"Content-Type": "application/json"}
    for path in ("/v1/runs", "/v1/recipes", "/v1/sweeps"):
        wrapped = json.dumps({"recipe": body, "design": body, "body": body, "changes": body}, default=repr).encode()
        for sent in (content, wrapped):
            answer = api.post(path, content=sent, headers=header)
            assert answer.status_code == 422, answer.text
            assert answer.json()["errors"]


MANY = {f"field{number}": 1 for number in range(3000)}
LONG = "x" * 100_000


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/recipes", {"body": MANY}),
        ("/v1/recipes", {"preset": "scalerl", "changes": {LONG: 1}}),
        ("/v1/sweeps", MANY | {LONG: 1}),
        ("/v1/sweeps:plan", {"preset": "scalerl", "design": {"kind": "grid", "factors": {LONG: [1]} | MANY}}),
    ],
)
def test_a_body_with_very_much_wrong_is_answered_in_short(
    path: str, body: Any, api: TestClient, headers: Headers
) -> None:
    answer = api.post(path, json=body, headers=headers["operate"])
    assert answer.status_code == 422, answer.text[:500]
    assert len(answer.content) < 50_000
    assert 1 <= len(faults(answer)) <= 100


def test_only_faults_that_are_shown_are_put_into_words(
    api: TestClient, headers: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def in_words(kind: str, context: object, otherwise: str, given: object) -> str:
        said.append(kind)
        return otherwise

    monkeypatch.setattr("server.problems.in_words", in_words)
    assert api.post("/v1/sweeps", json=MANY, headers=headers["operate"]).status_code == 422
    assert 1 <= len(said) <= 100


def test_of_a_flood_of_faults_the_first_are_told_and_how_many_there_are(api: TestClient, headers: Headers) -> None:
    """All of them would be ten seconds of the process that serves, and a gigabyte."""
    run = external_run(api, headers)
    flood = {"a": [{"seq": 1}]} | {f"field{number}": 1 for number in range(20_000)}
    answer = run.post("metrics", flood | {"points": [{"metric": "loss", "step": "x"}] * 10, "seq": 1})
    told = faults(answer)
    assert answer.status_code == 422
    assert len(answer.content) < 50_000
    assert told["body"] == "has 20,021 faults, the first are named here"
    assert told["field7"] == "unknown field; the schema is at /openapi.json"
    assert {"points.0.step", "points.0.value"} < set(told)
    assert "seq" not in told, "it is there, behind all that is unknown"


def test_a_flood_far_from_the_beginning_is_counted(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers)
    points = [{"metric": "loss", "step": step, "value": 1} for step in range(200)] + [{}] * 1000
    told = faults(run.post("metrics", {"seq": 1, "points": points}))
    assert told == {"body": "has 3,000 faults, none of them near its beginning; send a part of it to see them"}


def test_every_body_of_the_api_is_spared_a_flood() -> None:
    fields = [route.body_field for room in ROOMS for route in room.routes if isinstance(route, APIRoute)]
    taken = [field.field_info.annotation for field in fields if field is not None]
    bodies = [next(iter(get_args(one)), one) for one in taken]
    assert len(bodies) > 15
    assert [body for body in bodies if not issubclass(body, Body)] == []
