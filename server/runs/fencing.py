"""Which reports are still wanted: those of the current attempt of a run that is not over."""

from __future__ import annotations

from server.errors import Conflict, Invalid

from .models import Run
from .states import TERMINAL, Status

WAITING = frozenset({Status.QUEUED, Status.PREEMPTED, Status.LOST, Status.PAUSED})
"""Statuses in which the newest attempt of a launched run was given up, and the next has not begun."""


class Superseded(Conflict):
    code = "superseded"
    title = "A newer attempt has taken the place of this one"


class Over(Conflict):
    code = "over"
    title = "The run is over"


def check_wanted(run: Run, attempt: int) -> None:
    """Refuse a report of an attempt that was given up, or to a run that is over.

    Raises:
        Over: the run is in a terminal state; nothing revives it.
        Superseded: a newer attempt runs, or this one was given up.
        Invalid: the run has no such attempt.
    """
    check_exists(run, attempt)
    if Status(run.status) in TERMINAL:
        raise over(run)
    why = given_up(run, attempt)
    if why is not None:
        raise Superseded.field("attempt", attempt, f"{why}; write a checkpoint and exit", state=run.status)


def check_exists(run: Run, attempt: int) -> None:
    if attempt > run.attempt:
        message = f"run {run.id} has no such attempt yet; its newest is {run.attempt}"
        raise Invalid.field("attempt", attempt, message)


def over(run: Run) -> Over:
    """The error that says how the run ended."""
    why = f" ({run.reason})" if run.reason else ""
    message = f"run {run.id} is {run.status}{why} and stays so; start a new run instead"
    return Over(message, errors=[{"field": "status", "value": run.status, "message": message}], state=run.status)


def given_up(run: Run, attempt: int) -> str | None:
    """Why reports of `attempt` are no longer wanted though the run goes on; None when they are."""
    if attempt < run.attempt:
        return f"attempt {attempt} of run {run.id} was superseded by attempt {run.attempt}"
    if run.executor != "external" and Status(run.status) in WAITING:
        return f"attempt {attempt} of run {run.id} was given up: the run is {run.status}"
    return None
