"""What the scheduler rings, and how often. A second scheduler does no harm: the tasks take turns by advisory lock."""

from __future__ import annotations

from typing import Any

from server.settings import Settings

TICK_TASK = "worker.tasks.tick"
SWEEP_TASK = "worker.tasks.sweep_up"


def sweep_every_s(settings: Settings) -> float:
    """Seconds between two sweeps: what the broker lost is rung again after at most about that long."""
    return 5.0 * settings.tick_s


def beat_schedule(settings: Settings) -> dict[str, Any]:
    """Celery beat's entries. Messages expire, so that a worker that was away finds no heap of old ticks."""
    sweep_s = sweep_every_s(settings)
    return {
        "tick": {"task": TICK_TASK, "schedule": settings.tick_s, "options": {"expires": 2 * settings.tick_s}},
        "sweep-up": {"task": SWEEP_TASK, "schedule": sweep_s, "options": {"expires": sweep_s}},
    }
