"""The states of a run: `desired_state` is what the person wants, `status` what was observed."""

from __future__ import annotations

from enum import StrEnum

from forecurve.limits import OVER


class DesiredState(StrEnum):
    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"
    CANCEL = "cancel"


class Status(StrEnum):
    QUEUED = "queued"
    LAUNCHING = "launching"
    RUNNING = "running"
    SUSPECT = "suspect"
    STOPPING = "stopping"
    PAUSING = "pausing"
    PAUSED = "paused"
    PREEMPTED = "preempted"
    LOST = "lost"
    STOPPED = "stopped"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


UNASKED = frozenset({DesiredState.RUN, DesiredState.PAUSE})
"""Wishes by which nobody wanted a run to end: that it failed is then an alert."""

TERMINAL = frozenset(map(Status, OVER))
"""No transition leaves these."""

HOLDS_PLACE = frozenset({Status.LAUNCHING, Status.RUNNING, Status.SUSPECT, Status.STOPPING, Status.PAUSING})
"""Statuses in which a run occupies the cluster."""

_PAUSES = {Status.PAUSING, Status.PAUSED}

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.QUEUED: frozenset({Status.LAUNCHING, Status.RUNNING, Status.PAUSED, Status.STOPPED, Status.FAILED}),
    Status.LAUNCHING: frozenset({Status.RUNNING, Status.STOPPING, Status.LOST, Status.QUEUED} | _PAUSES | TERMINAL),
    Status.RUNNING: frozenset({Status.SUSPECT, Status.STOPPING, Status.PREEMPTED, Status.LOST} | _PAUSES | TERMINAL),
    Status.SUSPECT: frozenset({Status.RUNNING, Status.STOPPING, Status.PREEMPTED, Status.LOST} | _PAUSES | TERMINAL),
    Status.STOPPING: frozenset({Status.LOST} | TERMINAL),
    Status.PAUSING: frozenset({Status.PAUSED, Status.STOPPING, Status.LOST} | TERMINAL),
    Status.PAUSED: frozenset({Status.QUEUED, Status.STOPPED}),
    Status.PREEMPTED: frozenset({Status.QUEUED, Status.PAUSED, Status.STOPPED, Status.FAILED}),
    Status.LOST: frozenset({Status.QUEUED, Status.PAUSED, Status.STOPPED, Status.FAILED}),
    Status.STOPPED: frozenset(),
    Status.SUCCEEDED: frozenset(),
    Status.FAILED: frozenset(),
}
"""Status to the statuses that may follow it."""
