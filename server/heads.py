"""HEAD is answered wherever GET is, as GET would be less the body: those who watch a service ask so if it is up."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ASKED = "forecurve.asked"


class HeadsOfGets:
    """ASGI middleware: what is inside sees a GET. The body is left to the server outside, which sends none for HEAD,
    so that the headers (its length, its encoding) are those of GET."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        begun, complete, unread = asyncio.Event(), False, True

        async def send_and_see(message: Message) -> None:
            nonlocal complete
            complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)
            if message["type"] == "http.response.start":
                begun.set()

        async def gone_once_begun() -> Message:
            """A stream has no end of its own, and whoever sent HEAD waits for nothing after the headers."""
            nonlocal unread
            if unread:
                unread = False
                return {"type": "http.request", "body": b""}
            await begun.wait()
            return {"type": "http.disconnect"}

        await self.app({**scope, "method": "GET", _ASKED: "HEAD"}, gone_once_begun, send_and_see)
        if begun.is_set() and not complete:
            await send({"type": "http.response.body", "body": b""})


def method_asked(scope: Scope) -> str:
    """The method that was sent, where it makes a difference that it was HEAD."""
    return str(scope.get(_ASKED, scope["method"]))
