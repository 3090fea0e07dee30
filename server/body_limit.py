"""Bodies that are too large are refused with 413: unread when they state their length, else where they cross it."""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MEGABYTE = 1024 * 1024
METRICS_LIMIT = 10 * MEGABYTE
LIMIT = 1 * MEGABYTE
_METRICS = re.compile(r"/v1/runs(:import|/[^/]+/metrics)/?")


def limit_of(path: str) -> int:
    """Most bytes that a request to `path` may carry."""
    return METRICS_LIMIT if _METRICS.fullmatch(path) else LIMIT


class BodyLimit:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = limit_of(scope["path"])
        stated = dict(scope["headers"]).get(b"content-length", b"")
        said_too_large = stated.isdigit() and int(stated) > limit
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            if not said_too_large:
                message = await receive()
                received += len(message.get("body", b""))
            if said_too_large or received > limit:
                raise HTTPException(413, _detail(limit))  # FastAPI lets this kind pass while it reads a body
            return message

        await self.app(scope, receive_limited, send)


def _detail(limit: int) -> str:
    return f"The body has more than {limit // MEGABYTE} MB; split it and send the parts one after the other."
