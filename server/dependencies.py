"""What endpoints depend on: a session that commits at the edge, the clock, and who is calling."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from sqlalchemy.orm import Session

import server.paths  # noqa: F401  (registers `:id`, which the paths of endpoints are written with)
from server.access.idempotency import claim_key
from server.access.service import Identity, authenticate, note_use
from server.access.tries import come_from
from server.database import transaction
from server.errors import Forbidden, Invalid, Unauthenticated
from server.settings import Settings

SESSION_COOKIE = "forecurve_session"
"""The cookie of a service at the usual port; see `session_cookie`."""


async def place(request: Request) -> AsyncIterator[None]:
    """One of the places for requests at work. It is waited for in the event loop, which takes no thread."""
    async with request.app.state.places.one():
        yield


def db_session(request: Request, _: Annotated[None, Depends(place, scope="function")]) -> Iterator[Session]:
    """One transaction per request: committed when the handler returns, rolled back when it raises."""
    with transaction(request.app.state.sessions) as session:
        come_from(session, request.app.state.tries, request.client.host if request.client else None)
        yield session
    note_use(request.app.state.sessions, session)


def clock() -> datetime:
    """The time now, in UTC; tests override it."""
    return datetime.now(UTC)


def app_settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


async def forecast_place(request: Request) -> AsyncIterator[None]:
    """One of the few places for forecasts that are made when somebody asks. Taken before any other: who waits for it
    keeps nobody else from being answered. Who asks for no metric needs none."""
    if not request.query_params.get("metric"):
        yield
        return
    async with request.app.state.forecast_places.one():
        yield


ForecastPlace = Annotated[None, Depends(forecast_place, scope="function")]
DbSession = Annotated[Session, Depends(db_session, scope="function")]
Now = Annotated[datetime, Depends(clock)]
AppSettings = Annotated[Settings, Depends(app_settings)]


def caller(request: Request, session: DbSession, now: Now) -> Identity:
    """The identity of the request, from its bearer token or its session cookie."""
    header = request.headers.get("authorization", "")
    secret = header[7:].strip() if header[:7].lower() == "bearer " else session_secret(request)
    if not secret:
        raise Unauthenticated(
            "Send `Authorization: Bearer <token>`, or log in; `forecurve status` prints a login link."
        )
    identity = authenticate(session, secret, now)
    if identity.kind == "session" and request.method not in ("GET", "HEAD") and not is_same_origin(request):
        raise Forbidden("A browser session may change things only from this site's own pages.")
    claim_key(request, session, identity.token_id, secret)
    return identity


async def known_parameters(request: Request) -> None:
    """Refuse a query parameter that nothing reads: a misspelt filter would give the whole list. And one that is given
    more often than it is read: of two filters one would not hold."""
    if not request.query_params:
        return
    known = dict(_parameters(request.scope["route"].dependant))
    takes = f"it takes {', '.join(f'`{name}`' for name in known)}" if known else "it takes none"
    messages = {
        name: f"is no parameter of {request.method} {request.url.path}; {takes}"
        if name not in known
        else f"is given {len(request.query_params.getlist(name))} times, and is one value; give it once"
        for name in request.query_params
        if name not in known or (len(request.query_params.getlist(name)) > 1 and not known[name])
    }
    if messages:
        faults = [{"field": name, "value": request.query_params[name], "message": messages[name]} for name in messages]
        raise Invalid("; ".join(f"{name}: {messages[name]}" for name in list(messages)[:10]), errors=faults[:100])


async def no_body_unread(request: Request) -> None:
    """Refuse a body that nothing reads: whoever sent it meant something. An empty object, as many clients send with
    every POST, says nothing."""
    if request.method == "GET" or request.scope["route"].body_field is not None:
        return
    body = (await request.body()).strip()
    if body not in (b"", b"{}"):
        message = f"{request.method} {request.url.path} takes no body; leave it out"
        raise Invalid.field("body", body, message)


def _parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """The query parameters that an endpoint or what it depends on reads, and which may be given several times."""
    for needed in dependant.dependencies:
        yield from _parameters(needed)
    yield from ((field.alias, "list[" in str(field.field_info.annotation)) for field in dependant.query_params)


Caller = Annotated[Identity, Depends(caller)]


def require(scope: str) -> Any:
    """A dependency that yields the Identity, or refuses it when `scope` is not among what it may do."""

    def check(identity: Caller) -> Identity:
        if scope not in identity.allowed:
            has = ", ".join(sorted(identity.scopes))
            mint = f"forecurve token create NAME --scope {scope}"
            message = f"This needs scope `{scope}`; the token `{identity.name}` has {has}."
            raise Forbidden(f"{message} An administrator can mint one that has it: `{mint}`.")
        return identity

    return Depends(check)


def require_run(identity: Identity, run_id: str, attempt: int) -> None:
    """Refuse an ingest token that was minted for another run or attempt."""
    if "ingest" not in identity.scopes or identity.run_id != run_id:
        message = f"the run takes reports only with its own ingest token; `{identity.name}` is another"
        raise Forbidden.field("run_id", run_id, message)
    if identity.attempt is not None and identity.attempt != attempt:
        message = f"this ingest token is for attempt {identity.attempt}; report as that, or with the other's token"
        raise Forbidden.field("attempt", attempt, message)


Reader = Annotated[Identity, require("read")]
Operator = Annotated[Identity, require("operate")]
Admin = Annotated[Identity, require("admin")]


def session_secret(request: Request) -> str | None:
    """The secret of the browser's session with this service, if it has one."""
    return request.cookies.get(session_cookie(request.headers.get("host", "")))


def session_cookie(host: str) -> str:
    """The name of a session's cookie at `host`, a `Host` header or an address without a path. Browsers give a cookie to
    every port of its host: without the port in its name, who logs in to one service there is logged out of another."""
    port = host.rpartition(":")[2]
    return f"{SESSION_COOKIE}_{port}" if port.isdecimal() else SESSION_COOKIE


def is_same_origin(request: Request) -> bool:
    """Whether one of our own pages sent this. Browsers send `Sec-Fetch-Site` over https and to loopback only."""
    fetch_site = request.headers.get("sec-fetch-site")
    if fetch_site is not None:
        return fetch_site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is not None and origin == f"{request.url.scheme}://{request.url.netloc}"
