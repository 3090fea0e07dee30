"""A thread in every worker's main process that publishes the outbox twice a second.

From commit to task it costs half a second at most; the scheduler's tick, which does the same, may then be slow or away.
"""

from __future__ import annotations

import logging
import threading

from celery.signals import worker_init, worker_ready, worker_shutting_down

from worker.context import Context, utc_now
from worker.dispatch import dispatch

log = logging.getLogger(__name__)

EVERY_S = 0.5
AFTER_FAULT_S = 5.0


class Ringer(threading.Thread):
    """Dispatches until told to stop. Whatever goes wrong, it waits and goes on: a database may be away for a while."""

    def __init__(self, context: Context, every_s: float = EVERY_S, after_fault_s: float = AFTER_FAULT_S):
        super().__init__(name="ringer", daemon=True)
        self._context = context
        self._every_s = every_s
        self._after_fault_s = after_fault_s
        self._stopped = threading.Event()

    def run(self) -> None:
        wait_s = self._every_s
        while not self._stopped.wait(wait_s):
            try:
                dispatch(self._context, utc_now())
                wait_s = self._every_s
            except Exception:
                log.warning("the outbox was not published", exc_info=True)
                wait_s = self._after_fault_s

    def stop(self) -> None:
        self._stopped.set()


_running: list[Ringer] = []


def _refuse_to_start(**_: object) -> None:
    """Where no task could be done: a worker that is up and fails each would have to be noticed by what is not done."""
    from worker.tasks import context

    try:
        context()
    except ValueError as fault:
        raise SystemExit(str(fault)) from None


def _start(**_: object) -> None:
    from worker.tasks import context  # tasks import the application, which must not import them back

    ringer = Ringer(context())
    _running.append(ringer)
    ringer.start()


def _stop(**_: object) -> None:
    for ringer in _running:
        ringer.stop()


worker_init.connect(_refuse_to_start)
worker_ready.connect(_start)
worker_shutting_down.connect(_stop)
