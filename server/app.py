"""The API as an ASGI application: every room's router under /v1, one place where errors become answers."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.orm import Session, sessionmaker
from starlette.exceptions import HTTPException

from server.access.endpoints import router as access
from server.alerts.endpoints import router as alerts
from server.checkpoints.endpoints import router as checkpoints
from server.database import make_engine, make_sessions, new_id
from server.errors import Problem
from server.events.endpoints import router as events
from server.forecasts.endpoints import router as forecasts
from server.metrics.endpoints import router as metrics
from server.recipes.endpoints import router as recipes
from server.runs.endpoints import router as runs
from server.settings import Settings, get_settings
from server.sweeps.endpoints import router as sweeps

log = logging.getLogger(__name__)


def create_api(settings: Settings | None = None, sessions: sessionmaker[Session] | None = None) -> FastAPI:
    """Compose the API. `sessions` is given by tests; else an engine is made from the settings."""
    settings = settings or get_settings()
    app = FastAPI(title="Forecurve", version="1", docs_url="/docs", redoc_url=None)
    app.state.settings = settings
    app.state.sessions = sessions or make_sessions(make_engine(settings.database_url, pool_size=10, max_overflow=20))
    for router in (recipes, sweeps, runs, metrics, forecasts, checkpoints, alerts, access, events):
        app.include_router(router, prefix="/v1")
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _unreadable)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)
    return app


def problem_response(problem: Problem) -> JSONResponse:
    """RFC 9457 answer of a Problem."""
    body: dict[str, Any] = {
        "type": f"urn:forecurve:problem:{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        "request_id": new_id("req"),
        "errors": problem.errors,
        **problem.extra,
    }
    return JSONResponse(body, problem.status, media_type="application/problem+json")


def _problem(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)
    return problem_response(error)


def _unreadable(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    faults = [
        {"field": ".".join(str(part) for part in fault["loc"][1:]) or str(fault["loc"][0]), "value": fault.get("input"), "message": fault["msg"]}
        for fault in error.errors()
    ]
    from server.errors import Invalid

    return problem_response(Invalid("; ".join(f"{f['field']}: {f['message']}" for f in faults), errors=faults))


def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    problem = Problem(str(error.detail))
    problem.status, problem.title, problem.code = error.status_code, str(error.detail), f"http-{error.status_code}"
    return problem_response(problem)


def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.exception("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem_response(Problem("Something went wrong on our side; the log has the request id."))
