"""Every request has an id: in its answer's header, in a problem's body, and in every line logged on its way."""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.database import new_id
from server.outages import OutagesInOneLine

HEADER = "X-Request-ID"
log = logging.getLogger("server.requests")
_current: ContextVar[str | None] = ContextVar("request_id", default=None)


def current_request_id() -> str:
    """The id of the request being served; a fresh one outside of any request."""
    return _current.get() or new_id("req")


class RequestIdFilter(logging.Filter):
    """Gives log records `request_id`, `-` outside of a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = _current.get() or "-"
        return True


def log_to_stderr() -> None:
    """Have the service's own log lines written with their request's id; for a process that has not set up logging."""
    ours = logging.getLogger("server")
    if ours.handlers or logging.getLogger().handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"))
    handler.addFilter(RequestIdFilter())
    handler.addFilter(OutagesInOneLine())
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)


class RequestIds:
    """ASGI middleware that names each request and logs its answer. Outermost, so that errors carry the id too."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, began = new_id("req"), time.perf_counter()
        _current.set(request_id)  # never reset: each request has its own context, and the 500 handler runs further out

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = request_id
                took = (time.perf_counter() - began) * 1000
                log.debug("%s %s %s %.0f ms", scope["method"], scope["path"], message["status"], took)
            await send(message)

        await self.app(scope, receive, send_named)
