"""What the scheduler rings, and how often. A second scheduler does no harm: the tasks take turns by advisory lock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from celery.schedules import schedule

from server.clocks import CLOCKS_DIFFER
from server.settings import Settings

TICK_TASK = "worker.tasks.tick"
SWEEP_TASK = "worker.tasks.sweep_up"
LOGS_TASK = "worker.tasks.read_logs"


_BEGAN = datetime.now(UTC), monotonic()


def steady_now() -> datetime:
    """The time by a clock that nobody sets. By the other one nothing would be rung for as long as it was set back."""
    began, at = _BEGAN
    return began + timedelta(seconds=monotonic() - at)


def sweep_every_s(settings: Settings) -> float:
    """Seconds between two sweeps: what the broker lost is rung again after at most about that long."""
    return 5.0 * settings.tick_s


def expires_s(every_s: float) -> float:
    """Seconds after which nobody need hear what is rung every `every_s`: a worker that was away finds no heap of it.

    A worker goes by its own clock. What expired sooner than clocks differ, one that is ahead would never hear.
    """
    return every_s + CLOCKS_DIFFER.total_seconds()


def beat_schedule(settings: Settings) -> dict[str, Any]:
    """Celery beat's entries."""
    tick_s, sweep_s = settings.tick_s, sweep_every_s(settings)
    return {
        "tick": {"task": TICK_TASK, "schedule": _every(tick_s), "options": {"expires": expires_s(2 * tick_s)}},
        "read-logs": {"task": LOGS_TASK, "schedule": _every(tick_s), "options": {"expires": expires_s(2 * tick_s)}},
        "sweep-up": {"task": SWEEP_TASK, "schedule": _every(sweep_s), "options": {"expires": expires_s(sweep_s)}},
    }


def _every(seconds: float) -> Any:
    return schedule(seconds, nowfun=steady_now)
