"""The API as an ASGI application: every room's router under /v1, one place where errors become answers."""

from __future__ import annotations

from fastapi import Depends, FastAPI
from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from server.access.endpoints import router as access
from server.access.tries import Tries
from server.alerts.endpoints import router as alerts
from server.body_limit import BodyLimit
from server.checkpoints.endpoints import router as checkpoints
from server.comparisons.endpoints import router as comparisons
from server.database import Patience, make_engine, make_sessions
from server.dependencies import clock, known_parameters, no_body_unread
from server.events.endpoints import router as events
from server.events.stream import EventFeed
from server.forecasts.endpoints import router as forecasts
from server.forecasts.of_metric import AT_ONCE, LONGEST_WAIT_S, OTHERS_FIRST
from server.heads import HeadsOfGets
from server.health import router as health
from server.logs.endpoints import router as logs
from server.metrics.endpoints import router as metrics
from server.mlflow.endpoints import router as mlflow
from server.observing import Timed
from server.observing import router as observing
from server.openapi import describe
from server.places import Places
from server.problems import add_handlers
from server.recipes.endpoints import router as recipes
from server.request_id import RequestIds, log_to_stderr
from server.runs.endpoints import router as runs
from server.runs.reporting import router as reporting
from server.settings import Settings, get_settings
from server.sweeps.endpoints import router as sweeps

PLACES = 30
"""Requests that work at once, each with a connection; fewer than there are threads."""
_OTHERS = 4
"""Connections of what no request asks: the stream's poller, `/readyz`."""
_KEPT = 10
"""Connections that stay open when nothing is going on."""

ROOMS = (recipes, sweeps, runs, logs, comparisons, reporting, metrics, forecasts, checkpoints, alerts, access, events)


def create_api(settings: Settings | None = None, sessions: sessionmaker[Session] | None = None) -> FastAPI:
    """Compose the API. `sessions` is given by tests; else an engine is made from the settings."""
    if settings is None:  # the edge of a process that serves
        settings = get_settings()
        log_to_stderr()
    app = FastAPI(title="Forecurve", version="1", docs_url="/docs", redoc_url=None, redirect_slashes=False)
    app.state.settings = settings
    app.state.sessions = sessions or make_sessions(_engine(settings))
    app.state.places = Places(PLACES)
    app.state.forecast_places = Places(AT_ONCE, LONGEST_WAIT_S, busy=OTHERS_FIRST)
    app.state.tries = Tries(settings.wrong_tokens_a_minute)
    app.state.feed = EventFeed(app.state.sessions, clock)
    app.include_router(health)
    app.include_router(observing, dependencies=[Depends(known_parameters)])
    for router in ROOMS:
        app.include_router(router, prefix="/v1", dependencies=[Depends(known_parameters), Depends(no_body_unread)])
    app.include_router(mlflow)
    add_handlers(app)
    app.add_middleware(BodyLimit)
    app.add_middleware(Timed)
    app.add_middleware(HeadsOfGets)
    app.add_middleware(RequestIds)  # added last, so outermost
    describe(app)
    return app


def _engine(settings: Settings) -> Engine:
    """Somebody waits for every answer: what takes too long is given up, and its connection serves the next."""
    patience = Patience(settings.statement_timeout_s, settings.lock_timeout_s, settings.idle_transaction_timeout_s)
    return make_engine(settings.database_url, patience, pool_size=_KEPT, max_overflow=max(0, PLACES + _OTHERS - _KEPT))
