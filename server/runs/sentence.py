"""The one line above a run's curve where no forecast says it: before there is one, and after the run's end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from forecurve.science import Estimate
from forecurve.science.wording import compute_text, interval_text, level_text
from server.forecasts.ending import is_withheld

from .models import Run
from .states import Status


def ended_sentence(run: Run, summary: Mapping[str, Any], fell_at: float | None = None) -> str:
    """Where a run has ended, whether it fell, and the ceiling as far as its curve tells it: nothing is left to decide
    or to expect."""
    fell = "" if fell_at is None else f" It fell below its forecast at {compute_text(fell_at)} {run.compute_unit}."
    return f"{_how_it_ended(run)}.{fell} {ceiling_words(summary)}"


def _how_it_ended(run: Run) -> str:
    spent = "" if run.last_compute is None else f" after {compute_text(run.last_compute)} {run.compute_unit}"
    reached = "" if run.last_reward is None else f" at pass rate {run.last_reward:.2f}"
    said = run.status.capitalize()
    why = f": {brief(run.reason)}" if run.reason else ""
    if why.startswith(f": {said} "):  # as the reconciler begins: what is said already is not said again
        why = f"{',' if spent or reached else ''} {why.removeprefix(f': {said} ')}"
    return f"{said}{spent}{reached}{why}"


def brief(reason: str) -> str:
    """One line, to go on after: a run may fail with a traceback, whose last line says what went wrong."""
    lines = reason.strip().split("\n")
    return (lines[-1] if lines[0].startswith("Traceback (") else lines[0]).rstrip(" .\r")


def ceiling_words(summary: Mapping[str, Any]) -> str:
    """What the curve of a run that is over tells of its ceiling."""
    A = summary["A"]
    ceiling = Estimate(A["median"], A["lower"], A["upper"])
    if is_withheld(summary):
        return "No ceiling can be read from its curve."
    if not summary.get("ceiling_known"):
        return f"It ended before its ceiling was identified ({interval_text(ceiling)})."
    return f"Ceiling {level_text(ceiling)}."


def without_forecast(run: Run, doing: str | None = None) -> str:
    """What there is to say of a run that has no forecast (yet); `doing` is what its trainer said last."""
    status = Status(run.status)
    if status is Status.QUEUED:
        waits_for = _first_report(run) if run.executor == "external" else "a place on the cluster"
        return f"Waiting for {waits_for}{_for_now(run)}."
    if status is Status.LAUNCHING:
        return f"Being launched{_for_now(run)}."
    if status in (Status.FAILED, Status.STOPPED, Status.SUCCEEDED) and run.unfitted:
        return f"{_how_it_ended(run)}. No forecast{_why_none(run)}."
    if status in (Status.FAILED, Status.STOPPED, Status.SUCCEEDED):
        return f"{_how_it_ended(run)}. No forecast was made."
    if run.last_reward is None and run.unfitted:
        return f"No evaluation yet{_why_none(run)}."
    if run.last_reward is None:
        return f"No evaluation yet{f': {brief(doing)}' if doing and status is Status.RUNNING else ''}."
    return f"Pass rate {run.last_reward:.2f}; no forecast{_why_none(run)}."


def _first_report(run: Run) -> str:
    """Its user is to begin it, and may have forgotten: since when it waits, of a first attempt."""
    if run.attempt > 1:
        return "its first report"
    return f"its first report since {run.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _for_now(run: Run) -> str:
    """What holds it up, where something does: a cluster that did not answer, a place that was taken away."""
    return f". {brief(run.reason)}" if run.reason else ""


def _why_none(run: Run) -> str:
    if run.unfitted:
        return f" ({run.unfitted.rstrip('.')})"
    # a run is dirty until its newest evaluations have been looked at
    return " yet, the curve is too short" if run.dirty_at is None else " yet, its evaluations are waiting to be fitted"


def with_forecast(run: Run, said: str, at_compute: float) -> str:
    """What a forecast of evaluations up to `at_compute` says; that the curve is back at fewer, as while a log is sent
    anew; and why it has not seen the newest evaluations where it could not."""
    now = run.last_compute
    if now is not None and now < at_compute:
        back = f"from before its curve went back to {compute_text(now)}"
        said = f"{said} This is as of {compute_text(at_compute)} {run.compute_unit}, {back}."
    return f"{said} Newer evaluations are not in it ({run.unfitted.rstrip('.')})." if run.unfitted else said
