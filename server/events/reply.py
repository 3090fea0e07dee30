"""The answer that carries a stream: an event stream with a beat, that gives up on who does not read it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.types import Message, Receive, Scope, Send

log = logging.getLogger(__name__)

BEAT_EVERY_S = 10.0
"""A listener that hears nothing for a few of these has no connection any more, whatever its own end of it says."""

UNREAD_S = 60.0
"""A connection that takes nothing for so long has nobody at its other end: its buffers are full since then."""


class StreamReply(EventSourceResponse):
    """Server-sent events, with a beat that tells a quiet stream from one that is cut, to readers and to proxies."""

    def __init__(
        self, content: Any, status_code: int = 200, *, unread_s: float = UNREAD_S, beat_every_s: float = BEAT_EVERY_S
    ) -> None:
        super().__init__(content, status_code, ping=beat_every_s, ping_message_factory=_beat)
        self._unread_s = unread_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the stream ends, the reader goes, or takes nothing any more."""

        async def send_in_time(message: Message) -> None:
            """Also the last one, on which the library's own `send_timeout` waits for ever."""
            try:
                async with asyncio.timeout(self._unread_s):
                    await send(message)
            except TimeoutError as error:
                raise SendTimeoutError from error

        try:
            await super().__call__(scope, receive, send_in_time)
        except SendTimeoutError:
            log.info("a stream ends: nobody has read it for a while; it may be resumed")


def _beat() -> ServerSentEvent:
    """An event and no comment, of which a browser's script would hear nothing; without data it would not either."""
    return ServerSentEvent(event="beat", data="{}")
