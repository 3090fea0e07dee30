"""The states of a run: `desired_state` is what the person wants, `status` what was observed."""

from __future__ import annotations

from enum import StrEnum


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


TERMINAL = frozenset({Status.STOPPED, Status.SUCCEEDED, Status.FAILED})
"""No transition leaves these."""

HOLDS_PLACE = frozenset({Status.LAUNCHING, Status.RUNNING, Status.SUSPECT, Status.STOPPING, Status.PAUSING})
"""Statuses in which a run occupies the cluster."""

_ENDS = {Status.STOPPED, Status.SUCCEEDED, Status.FAILED}
_PAUSES = {Status.PAUSING, Status.PAUSED}

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.QUEUED: frozenset({Status.LAUNCHING, Status.RUNNING, Status.PAUSED, Status.STOPPED, Status.FAILED}),
    Status.LAUNCHING: frozenset({Status.RUNNING, Status.STOPPING, Status.LOST, Status.QUEUED} | _PAUSES | _ENDS),
    Status.RUNNING: frozenset({Status.SUSPECT, Status.STOPPING, Status.PREEMPTED, Status.LOST} | _PAUSES | _ENDS),
    Status.SUSPECT: frozenset({Status.RUNNING, Status.STOPPING, Status.PREEMPTED, Status.LOST} | _PAUSES | _ENDS),
    Status.STOPPING: frozenset({Status.LOST} | _ENDS),
    Status.PAUSING: frozenset({Status.PAUSED, Status.STOPPING, Status.LOST} | _ENDS),
    Status.PAUSED: frozenset({Status.QUEUED, Status.STOPPED}),
    Status.PREEMPTED: frozenset({Status.QUEUED, Status.PAUSED, Status.STOPPED, Status.FAILED}),
    Status.LOST: frozenset({Status.QUEUED, Status.PAUSED, Status.STOPPED, Status.FAILED}),
    Status.STOPPED: frozenset(),
    Status.SUCCEEDED: frozenset(),
    Status.FAILED: frozenset(),
}
"""Status to the statuses that may follow it."""
