"""How errors reach MLflow's clients: beside our own members, problems have the two by which these know errors."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from server.errors import Conflict, Forbidden, Invalid, NotFound, Problem, TooLarge, Unauthenticated
from server.problems import SHOWN_TEXT, shown, unreadable

_CODES: tuple[tuple[type[Problem], str], ...] = (
    (NotFound, "RESOURCE_DOES_NOT_EXIST"),
    (Invalid, "INVALID_PARAMETER_VALUE"),
    (TooLarge, "REQUEST_LIMIT_EXCEEDED"),
    (Conflict, "RESOURCE_CONFLICT"),
    (Unauthenticated, "UNAUTHENTICATED"),
    (Forbidden, "PERMISSION_DENIED"),
)


class ThereAlready(Conflict):
    code, title = "there-already", "There is one already"


class MlflowRoute(APIRoute):
    """A route whose problems say `error_code` and `message`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                raise _told(unreadable(error)) from error
            except HTTPException as error:
                if error.status_code != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                    raise
                raise _told(TooLarge(str(error.detail))) from error
            except Problem as problem:
                raise _told(problem) from problem

        return handler


def _told(problem: Problem) -> Problem:
    said = shown(problem.detail, SHOWN_TEXT)
    problem.extra = {**problem.extra, "error_code": _code(problem), "message": said}
    return problem


def _code(problem: Problem) -> str:
    if isinstance(problem, ThereAlready):
        return "RESOURCE_ALREADY_EXISTS"
    return next((code for kind, code in _CODES if isinstance(problem, kind)), "INTERNAL_ERROR")
