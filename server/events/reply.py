"""The answer that carries a stream: an event stream that gives up on who does not read it."""

from __future__ import annotations

import logging
from typing import Any

from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError
from starlette.types import Receive, Scope, Send

log = logging.getLogger(__name__)

COMMENT_EVERY_S = 15
UNREAD_S = 60.0
"""A connection that takes nothing for so long has nobody at its other end: its buffers are full since then."""


class StreamReply(EventSourceResponse):
    """Server-sent events, with a comment now and then that keeps proxies from closing a quiet stream."""

    def __init__(self, content: Any, status_code: int = 200, *, unread_s: float = UNREAD_S) -> None:
        super().__init__(content, status_code, ping=COMMENT_EVERY_S, send_timeout=unread_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the stream ends, the reader goes, or takes nothing any more."""
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            log.info("a stream ends: nobody has read it for a while; it may be resumed")
