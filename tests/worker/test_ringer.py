"""The thread that publishes the outbox goes on, whatever goes wrong."""

from __future__ import annotations

import dataclasses
import threading

from server.events.outbox import enqueue
from tests.worker.harness import World
from worker.ringer import Ringer


def test_the_ringer_outlives_a_fault_that_nobody_foresaw(world: World):
    failed, published = threading.Event(), threading.Event()

    def ring(task: str, *args: object, expires_s: float | None = None) -> None:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("nobody foresaw this")
        published.set()

    ringer = Ringer(dataclasses.replace(world.context, ring=ring), every_s=0.01, after_fault_s=0.01)
    ringer.start()
    for happened in (failed, published):
        with world.sessions.begin() as session:
            enqueue(session, "worker.tasks.tick")
        assert happened.wait(20)
    ringer.stop()
    ringer.join(20)
    assert not ringer.is_alive()
