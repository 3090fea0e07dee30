"""What was logged since the last batch, in memory for at most a second: bounded, and safe to fill from any thread."""

from __future__ import annotations

import threading
from collections.abc import Sized
from typing import Any

MAX_POINTS = 100_000
"""Metric points kept in memory; beyond it the oldest are left out and counted. Evaluations are always kept."""
BATCH_POINTS = 5_000
BATCH_EVALUATIONS = 200


class Pending:
    """Points by (metric, step), of which the last value logged counts; evaluations; checkpoints and the outcome."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._points: dict[tuple[str, int], dict[str, Any]] = {}
        self._evaluations: list[dict[str, Any]] = []
        self._others: list[tuple[str, dict[str, Any]]] = []
        self.dropped = 0

    def add_points(self, points: list[dict[str, Any]]) -> None:
        with self._lock:
            for point in points:
                self._points[point["metric"], point["step"]] = point
            while len(self._points) > MAX_POINTS:
                self._points.pop(next(iter(self._points)))
                self.dropped += 1

    def add_evaluation(self, evaluation: dict[str, Any]) -> None:
        with self._lock:
            self._evaluations.append(evaluation)

    def add_other(self, kind: str, body: dict[str, Any]) -> None:
        """A checkpoint or the outcome: sent after what was logged before it."""
        with self._lock:
            self._others.append((kind, body))

    def __bool__(self) -> bool:
        return bool(self._points or self._evaluations or self._others)

    @property
    def entries(self) -> int:
        """How many entries `take` would make of what is pending."""
        with self._lock:
            batches = _count(self._points, BATCH_POINTS) + _count(self._evaluations, BATCH_EVALUATIONS)
            return batches + len(self._others)

    def take(self) -> tuple[list[dict[str, Any]], list[tuple[str, dict[str, Any]]]]:
        """Everything pending, as bodies of batches (evaluations first: they matter most) and of other entries."""
        with self._lock:
            points, self._points = list(self._points.values()), {}
            evaluations, self._evaluations = self._evaluations, []
            others, self._others = self._others, []
        batches: list[dict[str, Any]] = [
            {"points": [], "evaluations": part} for part in _parts(evaluations, BATCH_EVALUATIONS)
        ]
        batches += [{"points": part, "evaluations": []} for part in _parts(points, BATCH_POINTS)]
        return batches, others


def _count(items: Sized, size: int) -> int:
    return -(-len(items) // size)


def _parts(items: list[dict[str, Any]], size: int) -> list[list[dict[str, Any]]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
