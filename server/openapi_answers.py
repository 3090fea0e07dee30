"""The problems that an operation may answer with, as the description of the API names them: each stands once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from server.access.tries import TooManyTries
from server.errors import Conflict, Forbidden, Invalid, NotFound, Problem, TooLarge, Unauthenticated
from server.problems import MEDIA_TYPE, Unavailable

_SCHEMA = {"$ref": "#/components/schemas/ProblemBody"}
_REQUEST_ID = {"description": "Names the request in the server's log.", "schema": {"type": "string"}}
_REPLAYED = {
    "description": "`true` when this is the first answer to the same `Idempotency-Key`, given again.",
    "schema": {"type": "string", "const": "true"},
}

_WHEN = (
    (Unauthenticated, "No token, or one that is unknown, expired or revoked.", "Send `Authorization: Bearer <token>`."),
    (Forbidden, "The token does not allow this.", "This needs scope `admin`; the token `ci` has read."),
    (NotFound, "There is no such thing.", "run_id: no such run; `GET /v1/runs` lists them"),
    (
        Conflict,
        "In conflict with the present state, or the `Idempotency-Key` was used for another request.",
        "Idempotency-Key: was used for another request; use a new key for new work",
    ),
    (
        TooLarge,
        "The body is larger than 1 MB (10 MB for metrics), or what it asks for is.",
        "The body has more than 1 MB; split it and send the parts one after the other.",
    ),
    (Invalid, "The request does not hold; `errors` names every fault.", "limit: must be at most 1000"),
    (
        TooManyTries,
        "Too many unknown tokens came from this address within a minute, and yours was not let in before.",
        "Too many unknown tokens or login links came from 192.0.2.7; check which program there sends them, and send "
        "yours again in 42 s.",
    ),
    (Problem, "A fault of ours.", "Something went wrong on our side; the log has the request id."),
    (
        Unavailable,
        "The database does not answer or took too long, or too much waits; nothing was changed.",
        "The database does not answer right now; nothing was changed. Send it again.",
    ),
)

_RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "string"}}}
_HEADERS = {
    401: {"WWW-Authenticate": {"description": "`Bearer`", "schema": {"type": "string"}}},
    429: _RETRY_AFTER,
    503: _RETRY_AFTER,
}


def components() -> dict[str, Any]:
    """For `components.responses`, by status."""
    return {kind.__name__: _answer(kind, when, detail) for kind, when, detail in _WHEN}


def add_answers(path: str, method: str, operation: dict[str, Any]) -> None:
    """Give the operation every problem that it may answer with, and its answers the headers that they have."""
    answers = operation["responses"]
    named = {str(kind.status): {"$ref": f"#/components/responses/{kind.__name__}"} for kind, *_ in _WHEN}
    for status in {*(status for status in answers if status in named), *_everywhere(path, method, operation)}:
        answers[status] = named[status]
    for status, answer in answers.items():
        if status < "300":
            headers = {"X-Request-ID": _REQUEST_ID}
            if method == "post":
                headers["Idempotency-Replayed"] = _REPLAYED
            answer["headers"] = headers
    operation["responses"] = dict(sorted(answers.items()))


def _everywhere(path: str, method: str, operation: dict[str, Any]) -> Iterator[str]:
    """What any operation of its kind may answer, which no endpoint has to say."""
    if not path.startswith("/v1"):  # /healthz, /readyz
        return
    yield from ("401", "403", "422", "429", "500", "503")
    if method == "post":
        yield "409"
    if "requestBody" in operation:
        yield "413"


def _answer(kind: type[Problem], when: str, detail: str) -> dict[str, Any]:
    field, _, message = detail.partition(": ")
    example = {
        "type": f"urn:forecurve:problem:{kind.code}",
        "title": kind.title,
        "status": kind.status,
        "code": kind.code,
        "detail": detail,
        "request_id": "req_01k9z6v3m8x2c5b7n4q1w0e6r9",
        "errors": [{"field": field, "value": None, "message": message}] if message else [],
    }
    return {
        "description": when,
        "headers": {"X-Request-ID": _REQUEST_ID, **_HEADERS.get(kind.status, {})},
        "content": {MEDIA_TYPE: {"schema": _SCHEMA, "example": example}},
    }
