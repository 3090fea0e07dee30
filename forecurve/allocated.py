"""What becomes of a run whose sweep shares its compute, in a few words: the same on pages and at a terminal."""

from __future__ import annotations

from collections.abc import Callable

from forecurve.limits import OVER

TOLD_BY = ("status", "desired_state", "allocated", "goes_to", "last_compute")
"""What of a run, as the API names it, tells what becomes of it."""

_WAITS = ("queued", "preempted", "lost")


def becomes(
    written: Callable[[float], str],
    *,
    status: str,
    desired_state: str,
    allocated: bool,
    goes_to: float | None,
    last_compute: float | None,
) -> str:
    """Where a run goes, or where it is held; `written` is an amount of compute with its unit.

    >>> hours, run = "{:g} GPU-hours".format, {"status": "running", "desired_state": "run", "last_compute": 8.1}
    >>> becomes(hours, **run, allocated=True, goes_to=24.0), becomes(hours, **run, allocated=True, goes_to=0.0)
    ('trains to 24 GPU-hours', 'trains until it can be forecast')
    >>> held = run | {"status": "paused", "desired_state": "pause"}
    >>> becomes(hours, **held, allocated=True, goes_to=None), becomes(hours, **held, allocated=False, goes_to=None)
    ('held at 8.1 GPU-hours', "its user's, paused")
    """
    if status in OVER:
        return "failed" if status == "failed" else "over"
    if desired_state in ("stop", "cancel"):
        return "stopping"
    if not allocated:
        return f"its user's, {status}"
    if desired_state == "pause":
        return _held(written, last_compute) if status == "paused" else "is being held"
    goal = f"to {written(goes_to)}" if goes_to else "until it can be forecast"
    return f"waits to train {goal}" if status in _WAITS else f"trains {goal}"


def _held(written: Callable[[float], str], last_compute: float | None) -> str:
    return f"held at {written(last_compute)}" if last_compute else "held before it began"
