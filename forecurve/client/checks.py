"""What an attempt has reported so far, and what the service would therefore refuse."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from typing import Any

from forecurve.reports import compute_fault, evaluation_faults, order_fault

from .beginning import Reached

ANEW = 0.9
"""Of the compute that a step was reached with before: wall time is not the same when the work is done again, by less
than this; a count that left out what was spent before is."""


def restart_doubt(reached: Reached, step: int, compute: float) -> str | None:
    """Why a run that goes on seems not to count what was spent before, or None."""
    if step < reached.step or compute >= ANEW * reached.compute:
        return None
    spent = f"{reached.compute:g} had been spent by step {reached.step} before the restart"
    return f"compute is {compute:g} at step {step}, and {spent}: count on from there, or that part of the curve is lost"


class Checks:
    """Told of every report before it is sent; remembers those that hold."""

    def __init__(self) -> None:
        self._evaluated: list[tuple[int, float]] = []
        self._newest: list[tuple[int, float]] = []  # of the metric points: all that a long run need remember

    def evaluation_fault(self, evaluation: Mapping[str, Any]) -> str | None:
        """Why an evaluation cannot be sent, or None; from then on it counts as reported."""
        for field, value, message in evaluation_faults(evaluation):
            return f"{field} is {value}: {message}"
        step, compute = evaluation["step"], evaluation["compute"]
        if any(step == known for known, _ in self._evaluated):
            return f"step {step} was evaluated already; one evaluation a step and attempt"
        if backwards := order_fault(self._evaluated, step, compute):
            return backwards
        insort(self._evaluated, (step, compute))
        return None

    def point_compute_fault(self, step: int, compute: float) -> str | None:
        """Why metric points cannot carry this compute, or None."""
        if fault := compute_fault(compute):
            return f"compute is {compute}: {fault}"
        if backwards := order_fault(self._newest, step, compute):
            return backwards
        self._newest = [max([*self._newest, (step, compute)])]
        return None
