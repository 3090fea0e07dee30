"""What was logged since the last batch, in memory for at most a second: bounded, and safe to fill from any thread.

Nothing here takes a lock: a handler of a signal may log or finish, and the thread that it interrupts would hold it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sized
from contextlib import suppress
from typing import Any, TypeVar

MAX_POINTS = 100_000
"""Metric points kept in memory; beyond it the oldest are left out and counted. Evaluations are always kept."""
BATCH_POINTS = 5_000
MANY_POINTS = 4 * BATCH_POINTS
"""Metric points that are not to wait for the next second: a history that is logged in a loop is many at once."""
BATCH_EVALUATIONS = 200

T = TypeVar("T")


class Pending:
    """Points, of which the last value logged for a metric and step counts; evaluations; checkpoints and the outcome."""

    def __init__(self) -> None:
        self._points: deque[dict[str, Any]] = deque()
        self._evaluations: deque[dict[str, Any]] = deque()
        self._others: deque[tuple[str, dict[str, Any]]] = deque()
        self.dropped = 0

    def add_points(self, points: list[dict[str, Any]]) -> None:
        self._points.extend(points)
        while len(self._points) > MAX_POINTS:
            with suppress(IndexError):  # they were taken meanwhile
                self._points.popleft()
                self.dropped += 1

    @property
    def is_much(self) -> bool:
        return len(self._points) >= MANY_POINTS

    def add_evaluation(self, evaluation: dict[str, Any]) -> None:
        self._evaluations.append(evaluation)

    def add_other(self, kind: str, body: dict[str, Any]) -> None:
        """A checkpoint or the outcome: sent after what was logged before it."""
        self._others.append((kind, body))

    def __bool__(self) -> bool:
        return bool(self._points or self._evaluations or self._others)

    @property
    def entries(self) -> int:
        """How many entries `take` would make of what is pending, were no point logged twice."""
        batches = _count(self._points, BATCH_POINTS) + _count(self._evaluations, BATCH_EVALUATIONS)
        return batches + len(self._others)

    def take(self) -> tuple[list[dict[str, Any]], list[tuple[str, dict[str, Any]]]]:
        """Everything pending, as bodies of batches (evaluations first: they matter most) and of other entries."""
        others = list(_taken(self._others))  # first: what was logged before them is then taken with them
        evaluations = list(_taken(self._evaluations))
        points = list({(point["metric"], point["step"]): point for point in _taken(self._points)}.values())
        batches: list[dict[str, Any]] = [
            {"points": [], "evaluations": part} for part in _parts(evaluations, BATCH_EVALUATIONS)
        ]
        batches += [{"points": part, "evaluations": []} for part in _parts(points, BATCH_POINTS)]
        return batches, others


def _taken(things: deque[T]) -> Iterator[T]:
    """What is there now; what is added meanwhile waits for the next time."""
    for _ in range(len(things)):
        try:
            yield things.popleft()
        except IndexError:
            return


def _count(items: Sized, size: int) -> int:
    return -(-len(items) // size)


def _parts(items: list[dict[str, Any]], size: int) -> list[list[dict[str, Any]]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
