"""Signs of life: a file each that worker and scheduler touch as they go round. Health checks look how old it is.

`celery inspect ping` would ask a worker over the broker, at the start of another Python with this application for every
look; nothing asks a scheduler.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from celery import Celery, bootsteps
from celery import beat as celery_beat

from server.settings import get_settings

log = logging.getLogger(__name__)

EVERY_S = 5.0
"""How often the worker leaves one; the scheduler goes round as often, or oftener."""


def sign_of(who: str) -> Path | None:
    """The file of `worker` or `scheduler`; None where nobody looks for one."""
    folder = get_settings().signs_dir
    return Path(folder, f"{who}.alive") if folder else None


def leave(sign: Path) -> None:
    """Touch it. What fails is told, and ends nothing: who looks finds an old one."""
    try:
        sign.touch()
    except OSError as fault:
        log.warning("left no sign of life: %s", fault)


class WorkerSign(bootsteps.StartStopStep):  # type: ignore[misc]
    """Called by the loop that takes messages in: a worker that is stuck, or waits for its broker, leaves none."""

    requires = ("celery.worker.components:Timer",)

    def __init__(self, parent: Any, **given: Any) -> None:
        super().__init__(parent, **given)
        self._call: Any = None

    def start(self, parent: Any) -> None:
        if sign := sign_of("worker"):
            leave(sign)
            self._call = parent.timer.call_repeatedly(EVERY_S, leave, (sign,))

    def stop(self, parent: Any) -> None:
        if self._call is not None:
            self._call.cancel()


class Scheduler(celery_beat.Scheduler):  # type: ignore[misc]
    """In memory: a file that a full disk cut short would keep it down."""

    def tick(self, *args: Any, **given: Any) -> Any:
        if sign := sign_of("scheduler"):
            leave(sign)
        return super().tick(*args, **given)


def leave_signs(app: Celery) -> None:
    app.steps["worker"].add(WorkerSign)
