"""Which reports are still wanted: those of the current attempt of a run that is not over."""

from __future__ import annotations

from server.errors import Conflict, Invalid

from .models import Run
from .schemas import LateReport
from .states import TERMINAL, Status

WAITING = frozenset({Status.QUEUED, Status.PREEMPTED, Status.LOST, Status.PAUSED})
"""Statuses in which the newest attempt of a launched run was given up, and the next has not begun."""


class Superseded(Conflict):
    code = "superseded"
    title = "A newer attempt has taken the place of this one"


class Over(Conflict):
    code = "over"
    title = "The run is over"


def check_wanted(run: Run, report: LateReport) -> None:
    """Refuse a report that comes from an attempt that was given up, or to a run that is over.

    What counts is who sends it: the current attempt may hand in what an earlier one could not send.

    Raises:
        Over: the run is in a terminal state; nothing revives it.
        Superseded: a newer attempt runs, or this one was given up.
        Invalid: the run has no such attempt; an attempt hands in what is not an earlier one's.
    """
    check_reporter(run, report)
    if Status(run.status) in TERMINAL:
        raise over(run)
    why = given_up(run, report.reporter)
    if why is not None:
        field = "attempt" if report.handed_in_by is None else "handed_in_by"
        raise Superseded.field(field, report.reporter, f"{why}; write a checkpoint and exit", state=run.status)


def check_reporter(run: Run, report: LateReport) -> None:
    """Invalid when the run has no such attempt, or one hands in what is not an earlier one's."""
    check_exists(run, report.attempt)
    if report.handed_in_by is None:
        return
    if report.handed_in_by > run.attempt:
        raise _no_such_attempt(run, "handed_in_by", report.handed_in_by)
    if report.handed_in_by <= report.attempt:
        message = f"must be a later attempt than `attempt`, {report.attempt}; leave it out of an attempt's own reports"
        raise Invalid.field("handed_in_by", report.handed_in_by, message)


def check_exists(run: Run, attempt: int) -> None:
    if attempt > run.attempt:
        raise _no_such_attempt(run, "attempt", attempt)


def _no_such_attempt(run: Run, field: str, number: int) -> Invalid:
    return Invalid.field(field, number, f"run {run.id} has no such attempt yet; its newest is {run.attempt}")


def over(run: Run, how: str | None = None) -> Over:
    """The error that says how the run ended; `how` where its status does not show it yet."""
    why = f" ({run.reason})" if run.reason else ""
    message = f"{how or f'run {run.id} is {run.status}{why}'} and stays so; start a new run instead"
    return Over(message, errors=[{"field": "status", "value": run.status, "message": message}], state=run.status)


def given_up(run: Run, attempt: int) -> str | None:
    """Why reports of `attempt` are no longer wanted though the run goes on; None when they are."""
    if attempt < run.attempt:
        return f"attempt {attempt} of run {run.id} was superseded by attempt {run.attempt}"
    if run.executor != "external" and Status(run.status) in WAITING:
        return f"attempt {attempt} of run {run.id} was given up: the run is {run.status}"
    return None
