"""Live changes: one poller a process reads new events and hands them to everyone who listens.

However many pages are open, the database is asked twice a second. A listener first gets what it missed, read from
its own cursor, and then what the poller brings; the poller runs only while somebody listens. A listener that does
not keep up is let go: its browser connects again and resumes from the last id it has seen. So is one whose token has
expired or was revoked, and who connects again is then refused.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime

from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker
from sse_starlette import ServerSentEvent

from server.access.service import still_living

from .models import Event
from .service import EventPage, current_cursor, read_after

log = logging.getLogger(__name__)

POLL_EVERY_S = 0.5
MOST_WAITING = 1000
"""Batches that may wait for a listener before it is let go."""


@dataclass(eq=False)
class _Listener:
    """One open stream: whose it is, and the batches that wait for it."""

    token_id: str
    queue: asyncio.Queue[Sequence[Event]] = field(default_factory=lambda: asyncio.Queue(MOST_WAITING))
    is_over: bool = False

    def let_go(self) -> None:
        self.is_over = True
        with suppress(asyncio.QueueFull):
            self.queue.put_nowait(())  # it may be waiting for the next batch


class EventFeed:
    """The changes of one database, for any number of listeners in one event loop."""

    def __init__(
        self, sessions: sessionmaker[Session], clock: Callable[[], datetime], poll_every_s: float = POLL_EVERY_S
    ) -> None:
        self._sessions = sessions
        self._clock = clock
        self._poll_every_s = poll_every_s
        self._listeners: set[_Listener] = set()
        self._poller: asyncio.Task[None] | None = None
        self._cursor = 0

    async def changes(self, since: int | None, token_id: str) -> AsyncIterator[ServerSentEvent]:
        """Server-sent events after the cursor `since`, without end; from now on when it is None.

        It ends when the listener falls behind, or when what it missed cannot be read: it may resume then. It also ends
        when the token is expired or revoked.
        """
        try:
            async with aclosing(self._changes(since, token_id)) as changes:
                async for message in changes:
                    yield message
        except SQLAlchemyError:
            log.warning("a stream ends because what it missed cannot be read; it may resume", exc_info=True)

    async def _changes(self, since: int | None, token_id: str) -> AsyncGenerator[ServerSentEvent]:
        listener = await self._join(token_id)
        try:
            if since is not None:
                async for page in self._missed(since, until=self._cursor):
                    for message in _messages(page):
                        yield message
            while not listener.is_over:
                # a cursor of another process may be ahead of this poller's
                news = [event for event in await listener.queue.get() if since is None or event.transaction > since]
                for message in _messages(news):
                    yield message
        finally:
            self._leave(listener)

    async def _join(self, token_id: str) -> _Listener:
        now = await run_in_threadpool(self._now) if self._poller is None else 0
        if self._poller is None:  # asked again: another listener may have come meanwhile
            self._cursor = now
            self._poller = asyncio.create_task(self._poll(), name="events")
        listener = _Listener(token_id)
        self._listeners.add(listener)
        return listener

    def _leave(self, listener: _Listener) -> None:
        self._listeners.discard(listener)
        if not self._listeners and self._poller is not None:
            self._poller.cancel()
            self._poller = None

    async def _missed(self, since: int, until: int) -> AsyncIterator[Sequence[Event]]:
        """What happened after `since`, up to where the listener's queue begins."""
        while since < until:
            page = await run_in_threadpool(self._read, since)
            yield [event for event in page.items if event.transaction <= until]
            since = page.cursor

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._poll_every_s)
            try:
                await self._let_go()
                page = await run_in_threadpool(self._read, self._cursor)
            except Exception:
                log.warning("the stream cannot read events; it keeps trying", exc_info=True)
                continue
            self._cursor = page.cursor
            if page.items:
                self._hand_out(page.items)

    async def _let_go(self) -> None:
        """Let go of those whose token no longer holds."""
        asked = {listener.token_id for listener in self._listeners}
        ended = asked - await run_in_threadpool(self._living, asked)
        for listener in self._listeners:
            if listener.token_id in ended:
                listener.let_go()

    def _hand_out(self, events: Sequence[Event]) -> None:
        for listener in self._listeners:
            try:
                listener.queue.put_nowait(events)
            except asyncio.QueueFull:
                listener.let_go()

    def _now(self) -> int:
        with self._sessions() as session:
            return current_cursor(session)

    def _living(self, token_ids: set[str]) -> set[str]:
        with self._sessions() as session:
            return still_living(session, token_ids, self._clock())

    def _read(self, cursor: int) -> EventPage:
        with self._sessions() as session:
            return read_after(session, cursor)


def _messages(events: Sequence[Event]) -> list[ServerSentEvent]:
    """One message an event; the last of each transaction carries the cursor, so that none is half seen on resuming."""
    followers = [*events[1:], None]
    return [
        ServerSentEvent(
            event="change",
            id=None if follower is not None and follower.transaction == event.transaction else str(event.transaction),
            data=json.dumps({"kind": event.kind, "run_id": event.run_id, "sweep_id": event.sweep_id, "id": event.id}),
        )
        for event, follower in zip(events, followers, strict=False)  # no events: nobody follows
    ]
