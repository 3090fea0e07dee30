"""Only as many requests at once as there are connections for them; the others wait, and hold nothing while they do.

A request holds its connection between two turns in the pool of threads. So without this, requests that wait for a
connection could hold every thread, while those that have one wait for a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from server.problems import Unavailable

LONGEST_WAIT_S = 20.0
_BUSY = "More requests are at work than the service can answer; nothing was changed."


class Busy(Unavailable):
    code, title, retry_after_s = "busy", "Too much at once", 5


class Places:
    """So many places in each event loop: a process that serves has one loop."""

    def __init__(self, number: int, longest_wait_s: float = LONGEST_WAIT_S, *, busy: str = _BUSY) -> None:
        """`busy`: what is said to who waited in vain."""
        self._number, self._busy = number, busy
        self._longest_wait_s = longest_wait_s
        self._free: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """A place, as long as the block lasts.

        Raises:
            Busy: none became free in time.
        """
        free = self._free.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._number))
        try:
            async with asyncio.timeout(self._longest_wait_s):
                await free.acquire()
        except TimeoutError:
            raise Busy(self._busy) from None
        try:
            yield
        finally:
            free.release()
