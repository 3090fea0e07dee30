"""Errors on pages: to the login page when nobody is logged in, else a page in the same look. The API keeps its own."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import WebSocketRequestValidationError
from fastapi.responses import RedirectResponse

from server.errors import Unauthenticated
from server.problems import less_slash

from .page import here, render
from .security import HEADERS

API_PATHS = ("/v1", "/mlflow", "/healthz", "/readyz", "/metrics", "/openapi.json")
_THINGS = {"run_id": "run", "sweep_id": "sweep"}
"""What an address names, by the API's word for it."""

_TITLES: dict[int, str] = {
    HTTPStatus.NOT_FOUND: "Not found",
    HTTPStatus.UNPROCESSABLE_ENTITY: "The address does not hold",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong",
}
_WAYS_OUT: dict[int, str] = {
    HTTPStatus.NOT_FOUND: "The address may be misspelt, or the thing belongs to another installation.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The server's log has the details. Reload to try again.",
}


def use_pages_for_errors(app: FastAPI) -> None:
    """Put a page in front of each of the API's error handlers, for every path that is not the API's."""
    for error, answer in list(app.exception_handlers.items()):
        if error is not WebSocketRequestValidationError:
            app.add_exception_handler(error, _page_or(answer))


def is_api(path: str) -> bool:
    return any(path == start or path.startswith((f"{start}/", f"{start}:")) for start in API_PATHS)


def _page_or(answer: Callable[..., Any]) -> Callable[[Request, Exception], Any]:
    async def handler(request: Request, error: Exception) -> Response:
        api = answer(request, error)  # it also writes the log
        problem = cast(Response, await api if inspect.isawaitable(api) else api)
        if is_api(request.url.path):
            return problem
        if isinstance(error, Unauthenticated):
            return _to_login(request)
        if request.method == "GET" and problem.status_code == HTTPStatus.NOT_FOUND and (path := less_slash(request)):
            return RedirectResponse(request.url.replace(scheme="", netloc="", path=path))
        return _error_page(request, problem)

    return handler


def _to_login(request: Request) -> Response:
    target = f"/login?{urlencode({'next': here(request)})}" if request.method == "GET" else "/login"
    if request.headers.get("hx-request"):
        return Response(status_code=HTTPStatus.UNAUTHORIZED, headers={"HX-Redirect": target})
    return RedirectResponse(target, HTTPStatus.SEE_OTHER)


def _not_found(request: Request, said: dict[str, Any]) -> str:
    """In the words of pages: the API's own name the endpoint that lists such things."""
    named = [(_THINGS[fault["field"]], fault["value"]) for fault in said["errors"] if fault["field"] in _THINGS]
    if named:
        return " ".join(f"There is no such {thing}: `{value}`." for thing, value in named)
    return f"There is nothing at `{request.url.path}`."


def _without(request: Request, faults: list[dict[str, Any]]) -> str | None:
    """The address less what is wrong in its query, by value (pages call `run` what the API calls `run_id`) or else by
    name; None where that is not what is wrong."""
    asked, wrong = request.query_params.multi_items(), []
    for fault in faults:
        name, value = fault["field"], fault["value"]
        same = [pair for pair in asked if pair[1] == value]
        wrong += [pair for pair in same if pair[0] == name] or same or [pair for pair in asked if pair[0] == name]
    kept = [pair for pair in asked if pair not in wrong]
    return None if len(kept) == len(asked) else request.url.path + (f"?{urlencode(kept)}" if kept else "")


def _error_page(request: Request, problem: Response) -> Response:
    said = json.loads(bytes(problem.body))
    status = problem.status_code
    context = {"title": _TITLES.get(status, HTTPStatus(status).phrase), "way_out": _WAYS_OUT.get(status, "")}
    without = _without(request, said["errors"]) if request.method == "GET" else None
    detail = _not_found(request, said) if status == HTTPStatus.NOT_FOUND else said["detail"]
    about = {"code": status, "detail": detail, "without": without, "request_id": said["request_id"]}
    page = render(request, "error.html", status, **about, **context)
    page.headers.update({name: value for name, value in problem.headers.items() if not name.startswith("content-")})
    page.headers.update(HEADERS)  # a 500 is answered outside the middleware
    return page
