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

Broker = Literal["ok", "unreachable", "refused"]
"""Refused: it answers, and takes no task: REDIS_URL has another password than it, or it is not ready."""

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
    broker: Broker


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
    broker = ask_broker(settings.redis_url)
    return Readiness(status="ok" if broker == "ok" else "degraded", broker=broker)


def ask_broker(url: str) -> Broker:
    """What a `redis://` or `redis+socket://` URL answers to its own password and a PING.

    Two lines of the protocol, so that the server needs no Redis library. A broker that speaks TLS counts as answering
    when it takes the connection: the rest is the worker's to say.
    """
    asked = _asked(url)
    try:
        with _connect(url) as connection:
            if url.startswith("rediss"):
                return "ok"
            connection.sendall(b"".join(asked))
            answers = _lines(connection, len(asked))
    except OSError:
        return "unreachable"
    if any(answer.startswith(b"-") for answer in answers):
        return "refused"
    return "ok" if answers[-1:] == [b"+PONG"] else "unreachable"


def _asked(url: str) -> list[bytes]:
    parts = urlsplit(url)
    given = [unquote(word) for word in (parts.username, parts.password) if word]
    return [_command("AUTH", *given), _command("PING")] if parts.password else [_command("PING")]


def _command(*words: str) -> bytes:
    said = [word.encode() for word in words]
    return b"*%d\r\n" % len(said) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in said)


def _lines(connection: socket.socket, count: int) -> list[bytes]:
    """So many lines of the answer, or what there was until its end."""
    received = b""
    while received.count(b"\r\n") < count and (more := connection.recv(512)):
        received += more
    return received.split(b"\r\n")[:count]


def _connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    if parts.scheme in ("redis+socket", "unix", "socket"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(TIMEOUT_S)
        connection.connect(unquote(parts.path))
        return connection
    return socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 6379), timeout=TIMEOUT_S)
