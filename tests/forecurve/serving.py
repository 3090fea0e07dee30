"""The real API over real HTTP: uvicorn on a free port, in a thread, on the test's own database."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI


class _QuickServer(uvicorn.Server):
    """Uvicorn looks every .1 s whether it shall end, and waits as long for connections: idle time of each test."""

    async def main_loop(self) -> None:
        while not await self.on_tick(counter=0):
            await asyncio.sleep(0.01)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in [*self.servers, *(sockets or [])]:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        deadline = time.monotonic() + (self.config.timeout_graceful_shutdown or 0)
        while (self.server_state.connections or self.server_state.tasks) and time.monotonic() < deadline:
            await asyncio.sleep(0.002)
        for task in self.server_state.tasks:
            task.cancel()
        await self.lifespan.shutdown()


@contextmanager
def served(application: FastAPI) -> Iterator[str]:
    """The URL at which `application` answers inside the block."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = _QuickServer(uvicorn.Config(application, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not server.started:
            assert time.monotonic() < deadline, "uvicorn did not start"
            time.sleep(0.002)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(15)
    assert not thread.is_alive(), "uvicorn did not stop"
