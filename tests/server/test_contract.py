"""The service keeps to its own description: whatever is sent, each answer is one that `/openapi.json` tells of.

Every operation gets requests drawn from its schemas, with the ids of things that are there, and by whoever may call it.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest
from fastapi.testclient import TestClient
from httpx import Response
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.service import open_alert
from server.app import create_api
from server.database import new_id
from server.forecasts.models import Recommendation
from server.runs.models import Run
from server.settings import Settings
from tests.server.drawn import Drawn
from tests.server.forecasts.seeds import START, make_channel, make_forecast
from tests.server.reporting import Headers, bearer, evaluation, external_run, queued_run

DESCRIBED = json.loads(json.dumps(create_api(Settings(DATABASE_URL="postgresql://nowhere/none")).openapi()))
DRAWN = Drawn(DESCRIBED)
REGISTRY = Registry().with_resource("urn:api", Resource.from_contents(DESCRIBED, DRAFT202012))
ENDLESS = "/v1/stream"
DOORS = [
    (operation.get("tags", ["health"])[0], f"{method.upper()} {path}", operation)
    for path, operations in DESCRIBED["paths"].items()
    for method, operation in operations.items()
    if path != ENDLESS
]
ROOMS = sorted({room for room, *_ in DOORS})

Ids = dict[str, list[str]]


class Store:
    """A service with something of everything in it, and who may do what."""

    def __init__(self, api: TestClient, headers: Headers, sessions: sessionmaker[Session]) -> None:
        self.api, self._admin = api, headers["admin"]
        reporters = [external_run(api, headers, preset="scalerl", name=f"run {number}") for number in range(3)]
        for reporter in reporters:
            sent = [evaluation(step, reward=step / 20) for step in range(1, 9)]
            assert reporter.send(1, *sent, points=[{"metric": "loss", "step": 1, "value": "NaN"}]).status_code == 200
        self._ingest = bearer(reporters[0].token)
        self.reporting = reporters[0].run_id
        sweep = {"preset": "scalerl", "design": {"kind": "leave_one_out", "ingredients": ["cispo"]}}
        sweep = api.post("/v1/sweeps", json=sweep, headers=self._admin).json()
        token = api.post("/v1/tokens", json={"name": "a", "scopes": ["read"]}, headers=self._admin).json()
        runs = [reporter.run_id for reporter in reporters] + [queued_run(api, headers), sweep["runs"][0]["id"]]
        self.ids: Ids = {"run_id": runs, "sweep_id": [sweep["id"]], "token_id": [token["id"]], "control": runs}
        self.ids["recipe_id"] = [sweep["base_recipe_id"]]
        with sessions.begin() as session:
            self._fill(session, session.get_one(Run, runs[0]))

    def _fill(self, session: Session, run: Run) -> None:
        alert = open_alert(session, run, kind="below_forecast", level="ALERT", title="t", text="t", now=START)
        assert alert is not None
        forecast = make_forecast(session, run)
        columns = {"action": "stop", "reason": "It is over.", "numbers": {}, "forecast_id": forecast.id}
        advice = Recommendation(run_id=run.id, **columns)
        session.add(advice)
        channel = make_channel(session, "https://hooks.example.com/x")
        session.flush()
        made = {"alert": alert, "forecast": forecast, "recommendation": advice, "channel": channel}
        self.ids |= {f"{name}_id": [row.id] for name, row in made.items()}

    def send(self, door: str, asked: dict[str, Any], body: Any) -> Response:
        """Send what was drawn, as somebody who may."""
        method, path = door.split(" ")
        reports = method == "POST" and path.endswith(("/metrics", "/heartbeat", "/checkpoints", "/outcome"))
        if reports:
            asked = {**asked, "run_id": self.reporting}
        path = re.sub(r"\{(\w+)\}", lambda name: quote(asked[name[1]], safe=""), path)
        query = {name: value for name, value in asked.items() if f"{{{name}}}" not in door and name != KEY}
        headers = {**(self._ingest if reports else self._admin), **({KEY: asked[KEY]} if KEY in asked else {})}
        sent = {} if body is NOTHING else {"json": body}
        return self.api.request(method, path, params=query, headers=headers, **sent)

    def parameters(self, operation: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        """What an operation is asked: ids of things that are there, or that might be."""
        needed, optional = {}, {}
        for parameter in operation.get("parameters", ()):
            values = self._values(parameter["name"], parameter["schema"])
            (needed if parameter["required"] else optional)[parameter["name"]] = values
        return st.fixed_dictionaries(needed, optional=optional)

    def _values(self, name: str, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
        if name in self.ids:
            there = st.sampled_from([*self.ids[name], *self.ids[name], new_id("run"), "nowhere", "a\x01b"])
            return st.lists(there, min_size=1, max_size=4) if schema.get("type") == "array" else there
        if name == KEY:
            return st.sampled_from(["k1", "k2", "x" * 200, "\t"])
        return DRAWN.of(schema)


KEY = "Idempotency-Key"
NOTHING = object()


@pytest.fixture
def store(api: TestClient, headers: Headers, sessions: sessionmaker[Session]) -> Store:
    return Store(api, headers, sessions)


@pytest.mark.parametrize("room", ROOMS)
def test_every_answer_is_one_that_the_description_tells_of(room: str, store: Store) -> None:
    for at, door, operation in DOORS:
        if at == room:
            _hold_to_the_description(store, door, operation)


def test_every_example_is_taken(store: Store) -> None:
    for _, door, operation in DOORS:
        for schema in _examples(operation):
            asked = {name: values[0] for name, values in store.ids.items() if f"{{{name}}}" in door}
            for example in schema["examples"]:
                answer = store.send(door, asked, example)
                assert answer.status_code < 300 or answer.status_code == 409, (door, example, answer.text)


def _examples(operation: dict[str, Any]) -> list[dict[str, Any]]:
    named = re.findall(r"#/components/schemas/(\w+)", json.dumps(operation.get("requestBody", {})))
    return [DESCRIBED["components"]["schemas"][name] for name in named]


def _hold_to_the_description(store: Store, door: str, operation: dict[str, Any]) -> None:
    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    @given(asked=store.parameters(operation), sent=_bodies(operation))
    def check(asked: dict[str, Any], sent: Any) -> None:
        note(door)
        keep_to_the_description(operation, store.send(door, asked, sent))

    check()


def _bodies(operation: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "requestBody" not in operation:
        return st.just(NOTHING)
    body = operation["requestBody"]
    drawn = DRAWN.spoilt(DRAWN.of(body["content"]["application/json"]["schema"]))
    return drawn if body.get("required") else st.just(NOTHING) | drawn


def keep_to_the_description(operation: dict[str, Any], answer: Response) -> None:
    """Fail when the answer's status, kind or content is none of those that the operation tells of."""
    assert answer.status_code < 500, answer.text
    told = operation["responses"].get(str(answer.status_code))
    assert told is not None, f"{answer.status_code} is not described: {answer.text}"
    if "$ref" in told:
        told = DESCRIBED["components"]["responses"][told["$ref"].rpartition("/")[2]]
    assert answer.headers["x-request-id"]
    if "content" not in told:
        assert answer.content == b""
        return
    kind = answer.headers["content-type"]
    assert kind in told["content"], kind
    schema = json.loads(json.dumps(told["content"][kind]["schema"]).replace('"#/', '"urn:api#/'))
    jsonschema.Draft202012Validator(schema, registry=REGISTRY).validate(answer.json())
