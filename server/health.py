"""`/healthz` says that the process is up; `/readyz` that it can do its work."""

from __future__ import annotations

import socket
from typing import Literal
from urllib.parse import unquote, urlsplit

from fastapi import APIRouter, Request
from pydantic import BaseModel

from server.dependencies import AppSettings
from server.migrate import newest, revision_of
from server.problems import Unavailable, problems

TIMEOUT_S = 1.0

router = APIRouter(tags=["health"])


class Health(BaseModel):
    status: Literal["ok"] = "ok"


class OtherVersion(Unavailable):
    code, title, retry_after_s = "other-version", "The database is of another version", 30

    def __init__(self, found: str | None):
        told = f"The database is at revision {found or 'none'}, and this version of the service works with {newest()}"
        super().__init__(f"{told}. Run `python -m server.migrate` of the newer version, and no process of the older.")


class Readiness(BaseModel):
    """A broker that does not answer delays launches and refits, and loses nothing: the API stays ready without it."""

    status: Literal["ok", "degraded"]
    broker: Literal["ok", "unreachable"]


@router.get("/healthz")
async def healthz() -> Health:
    """The process is up. Asks nothing of anyone else, and waits for no thread."""
    return Health()


@router.get("/readyz", responses=problems(503))
def readyz(request: Request, settings: AppSettings) -> Readiness:
    """503 when the database does not answer or is of another version; `degraded` when only the broker does not."""
    with request.app.state.sessions() as session:
        found = revision_of(session)
    if found != newest():
        raise OtherVersion(found)
    broker = broker_answers(settings.redis_url)
    return Readiness(status="ok" if broker else "degraded", broker="ok" if broker else "unreachable")


def broker_answers(url: str) -> bool:
    """Whether something at a `redis://` or `redis+socket://` URL answers a PING.

    One line of the protocol, so that the server needs no Redis library. A broker that asks for a password or speaks
    TLS counts as answering when it takes the connection: whether the password is right is the worker's to say.
    """
    try:
        with _connect(url) as connection:
            if url.startswith("rediss"):
                return True
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))
    except OSError:
        return False


def _connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    if parts.scheme in ("redis+socket", "unix", "socket"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(TIMEOUT_S)
        connection.connect(unquote(parts.path))
        return connection
    return socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 6379), timeout=TIMEOUT_S)
