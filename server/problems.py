"""How errors become answers: RFC 9457 problems with a request id, for every error there is."""

from __future__ import annotations

import json
import logging
import math
import sys
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from psycopg.errors import DiskFull, IdleInTransactionSessionTimeout, LockNotAvailable, QueryCanceled
from pydantic import BaseModel, Field
from sqlalchemy.exc import DataError, DBAPIError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.routing import Match

from forecurve.recipes import RecipeError
from forecurve.recipes.wording import in_words
from forecurve.signs import visible
from server.database import MAY_BE_STORED
from server.errors import Invalid, NotFound, Problem, TooLarge
from server.heads import method_asked
from server.request_id import current_request_id
from server.unstorable import unstorable

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_METHODS = ("GET", "POST", "PATCH", "DELETE")
SHOWN_CHARACTERS = 200
"""Of an offending value; a fault in a batch of megabytes must not answer with megabytes."""
SHOWN_TEXT = 2000
"""Characters of what is said of it, which may hold a name that was sent."""
SHOWN_FAULTS = 100
"""A body of megabytes may have a million; all others are not even put into words."""


class Fault(BaseModel):
    """One thing that is wrong with a request."""

    field: str = Field(description="Dotted path in the request, e.g. `evaluations.3.reward`.")
    value: Any = None
    message: str


class ProblemBody(BaseModel):
    """RFC 9457 problem details."""

    type: str
    title: str
    status: int
    code: str = Field(description="Stable name of the kind of problem.")
    detail: str = Field(description="What happened, to what, and the way out.")
    request_id: str = Field(description="Also in the header `X-Request-ID` and in the server's log.")
    errors: list[Fault] = []


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For `responses=`: the problems an endpoint may answer with, beyond those that every endpoint may."""
    return {status: {} for status in statuses}  # described in `server.openapi_answers`


class WrongMethod(Problem):
    status, code, title = 405, "wrong-method", "No such method here"


class Unavailable(Problem):
    status, code, title, retry_after_s = 503, "unavailable", "Not available right now", 2


class TookTooLong(Unavailable):
    code, title, retry_after_s = "took-too-long", "Took too long", 10


def add_handlers(app: FastAPI) -> None:
    """Answer every error of the application with a problem."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RecipeError, _recipe)
    app.add_exception_handler(RequestValidationError, _unreadable)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(DataError, _unstorable)
    app.add_exception_handler(UnicodeEncodeError, _unstorable)
    app.add_exception_handler(OperationalError, _unavailable)
    app.add_exception_handler(InternalError, _unavailable_or_unexpected)
    app.add_exception_handler(PoolTimeout, _unavailable)
    app.add_exception_handler(Exception, _unexpected)


def problem_response(problem: Problem) -> JSONResponse:
    """The answer that carries `problem`, with the request's id in body and header."""
    request_id = current_request_id()
    body = {
        "type": f"urn:forecurve:problem:{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "detail": shown(problem.detail, SHOWN_TEXT),
        "request_id": request_id,
        "errors": [_shown_fault(fault) for fault in problem.errors[:SHOWN_FAULTS]],
        **problem.extra,
    }
    headers = {"X-Request-ID": request_id}
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.retry_after_s is not None:
        headers["Retry-After"] = str(problem.retry_after_s)
    # What a caller sent stands in the detail, and must not forge lines of the log or command a terminal.
    log.info("%s %s: %s", problem.status, problem.code, visible(shown(problem.detail, 500)))
    return JSONResponse(body, problem.status, headers=headers, media_type=MEDIA_TYPE)


def _shown_fault(fault: dict[str, Any]) -> dict[str, Any]:
    field, message = shown(fault["field"]), shown(fault["message"], SHOWN_TEXT)
    return fault | {"field": field, "value": shown(fault.get("value")), "message": message}


def shown(value: Any, characters: int = SHOWN_CHARACTERS) -> Any:
    """A value fit to stand in an answer: JSON without NaN, and short."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, bytes):
        value = value[:characters].decode(errors="replace")
    if not isinstance(value, str):
        try:
            return (
                json.loads(json.dumps(value, allow_nan=False)) if len(repr(value)) <= characters else _cut(repr(value))
            )
        except (TypeError, ValueError):
            value = repr(value)
    text = value.encode(errors="replace").decode()
    return text if len(text) <= characters else _cut(text, characters)


def _cut(text: str, characters: int = SHOWN_CHARACTERS) -> str:
    return f"{text[:characters]}... ({len(text)} characters)"


def _problem(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)
    return problem_response(error)


def _recipe(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RecipeError)
    return problem_response(Invalid(str(error), errors=error.problems))


def _unreadable(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return problem_response(unreadable(error))


def unreadable(error: RequestValidationError) -> Invalid:
    """The problem of a request that does not hold."""
    return _several([_fault(dict(item)) for item in error.errors()[:SHOWN_FAULTS]])


def _several(faults: list[dict[str, Any]]) -> Invalid:
    return Invalid("; ".join(f"{f['field']}: {f['message']}" for f in faults[:10]), errors=faults)


def _fault(item: dict[str, Any]) -> dict[str, Any]:
    where, *path = (str(part) for part in item["loc"])
    value = item.get("input")
    message = in_words(item["type"], item.get("ctx", {}), item["msg"].removeprefix("Value error, "), value)
    if item["type"] == "json_invalid":
        return {
            "field": "body",
            "value": None,
            "message": f"is not JSON: {item['ctx']['error']} at character {path[0]}",
        }
    if item["type"] == "extra_forbidden":
        message = "unknown field; the schema is at /openapi.json"
    if where == "body" and not path and item["type"] in ("missing", "model_type", "model_attributes_type"):
        message = "send a JSON object with `Content-Type: application/json`"
    if item["type"] == "missing":
        value = None  # pydantic puts the whole surrounding object here
    return {"field": ".".join(path) or where, "value": value, "message": message}


def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        problem: Problem = NotFound(f"There is nothing at {request.url.path}; {_elsewhere(request)}.")
    elif error.status_code == 405:
        return _wrong_method(request)
    elif error.status_code == 413:
        problem = TooLarge(str(error.detail))
    elif isinstance(error.__cause__, RecursionError | ValueError):  # FastAPI's 400 for a body that it cannot parse
        problem = Invalid.field("body", None, _compressed(request) or _unparsable(error.__cause__))
    else:
        problem = Problem(str(error.detail))
        problem.status, problem.title, problem.code = error.status_code, str(error.detail), f"http-{error.status_code}"
    answer = problem_response(problem)
    answer.headers.update(error.headers or {})
    return answer


def less_slash(request: Request) -> str | None:
    """The path without the slash at its end, where something is there. The API does not redirect: the address that is
    led to would be of what stands before the service, which it may not know."""
    path = request.url.path.rstrip("/")
    way = {**request.scope, "path": path}
    there = path != request.url.path and any(route.matches(way)[0] is not Match.NONE for route in request.app.routes)
    return path if there else None


def _elsewhere(request: Request) -> str:
    path = less_slash(request)
    return f"{path} is without a slash at its end" if path else "/openapi.json lists what there is"


def _wrong_method(request: Request) -> JSONResponse:
    """Starlette's own answer allows the methods of the first door only that stands at the path."""
    here = request.url.path
    ways = [{**request.scope, "method": method} for method in _METHODS]
    allowed = [
        way["method"] for way in ways if any(route.matches(way)[0] is Match.FULL for route in request.app.routes)
    ]
    answer = problem_response(
        WrongMethod(f"{method_asked(request.scope)} is nothing that {here} takes; it takes {', '.join(allowed)}.")
    )
    answer.headers["Allow"] = ", ".join(allowed)
    return answer


def _compressed(request: Request) -> str | None:
    coding = request.headers.get("content-encoding", "identity")
    if coding == "identity":
        return None
    return f"comes with `Content-Encoding: {coding}`, which is not taken; send it uncompressed"


def _unparsable(cause: RecursionError | ValueError) -> str:
    if isinstance(cause, RecursionError):
        return "is nested too deeply; send flatter JSON"
    if isinstance(cause, UnicodeDecodeError):
        return f"is not UTF-8 at byte {cause.start}; JSON is sent as UTF-8"
    return f"has a whole number of more than {sys.get_int_max_str_digits()} digits; send fewer"


async def _unstorable(request: Request, error: Exception) -> JSONResponse:
    faults = await unstorable(request)
    return problem_response(_several(faults)) if faults else _unexpected(request, error)


def _unavailable(request: Request, error: Exception) -> JSONResponse:
    kind, why = _given_up(error, reads=method_asked(request.scope) in ("GET", "HEAD"))
    log.error("%s %s: %s", method_asked(request.scope), request.url.path, why, exc_info=error)
    return problem_response(kind(why))


def _given_up(error: Exception, *, reads: bool) -> tuple[type[Unavailable], str]:
    cause = error.orig if isinstance(error, DBAPIError) else None
    if MAY_BE_STORED in getattr(error, "__notes__", ()) and not reads:
        way_out = "Look before you send it again; with an `Idempotency-Key` it may be sent again as it is"
        return Unavailable, f"The database was lost while it stored this, and may have stored it or not. {way_out}."
    if isinstance(cause, QueryCanceled):
        way_out = "Ask for less at once (a smaller `limit`, fewer runs), or again when less is going on"
        return TookTooLong, f"The database took too long and was stopped; nothing was changed. {way_out}."
    if isinstance(cause, IdleInTransactionSessionTimeout):
        return TookTooLong, "This took too long on our side and was given up; nothing was changed. Send it again."
    if isinstance(cause, LockNotAvailable):
        return Unavailable, "Another request holds what this one needs; nothing was changed. Send it again."
    if isinstance(cause, DiskFull):
        return (
            Unavailable,
            "The database has no room left on its disk; nothing was changed. Free some, then send it again.",
        )
    return Unavailable, "The database does not answer right now; nothing was changed. Send it again."


def _unavailable_or_unexpected(request: Request, error: Exception) -> JSONResponse:
    """Postgres counts the end of an idle transaction among its internal errors."""
    idle = isinstance(error, InternalError) and isinstance(error.orig, IdleInTransactionSessionTimeout)
    return _unavailable(request, error) if idle else _unexpected(request, error)


def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.exception("%s %s failed", method_asked(request.scope), request.url.path, exc_info=error)
    return problem_response(Problem("Something went wrong on our side; the log has the request id."))
