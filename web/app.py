"""The ASGI application that people and trainers reach: the API, the pages, the static files.

Run it with `uvicorn --factory web.app:create_app`.
"""

from __future__ import annotations

import gc

from fastapi import FastAPI, Request, Response
from fastapi.middleware.gzip import GZipMiddleware
from sqlalchemy.orm import Session, sessionmaker

from server.app import create_api
from server.settings import Settings

from .assets import load_assets
from .login import router as login
from .pages import alerts, compare, metric, new, reference, run, runs, settings, sweeps, track_record
from .problems import use_pages_for_errors
from .security import SecurityHeaders
from .templating import make_environment


def create_app(configuration: Settings | None = None, sessions: sessionmaker[Session] | None = None) -> FastAPI:
    """API and pages in one application; the arguments are those of `server.app.create_api`."""
    app = create_api(configuration, sessions)
    assets = load_assets()
    app.state.templates = make_environment(assets)
    _drop_foreign_docs(app)

    @app.get("/static/{digest}/{name:path}", include_in_schema=False)
    def static(request: Request, digest: str, name: str) -> Response:
        return assets.respond(request, digest, name)

    app.include_router(login)
    for page in (runs, run, metric, new, compare, sweeps, alerts, track_record, settings, reference):
        app.include_router(page.router)
    use_pages_for_errors(app)
    app.add_middleware(GZipMiddleware, minimum_size=2048, compresslevel=4)  # not the event stream
    app.add_middleware(SecurityHeaders)
    if configuration is None:  # the edge of a process that serves
        _keep_from_collections()
    return app


def _keep_from_collections() -> None:
    """What an application is made of is never garbage. To look all of it through again takes a tenth of a second and
    more, in which nobody is answered."""
    gc.collect()
    gc.freeze()


def _drop_foreign_docs(app: FastAPI) -> None:
    """FastAPI's own /docs loads scripts from a CDN, which our policy forbids; `pages.reference` is ours."""
    app.router.routes[:] = [
        route for route in app.router.routes if getattr(route, "path", "") not in ("/docs", "/docs/oauth2-redirect")
    ]
