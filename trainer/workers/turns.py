"""Whose turn it is at a generator's one engine: evaluations go before waves that wait, whatever was asked first.

A pass rate is worth most when it is new, and a wave that waits keeps a learner busy only later: the learner has the
wave before it. A wave never overtakes an evaluation that was sent before it, nor an evaluation the wave that a
generator without work was sent before it, however late their threads wake up.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """One thread at a time is let in; evaluations first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._busy = False
        self._waiting: list[int] = []  # evaluations, by the waves that go before them
        self._evaluations = self._waves = 0  # that were let in so far

    @contextmanager
    def wave(self, after: int = 0) -> Iterator[None]:
        """Wait until nobody is in, no evaluation waits, and `after` evaluations have been let in so far."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy and self._evaluations >= after and not self._urgent)
            self._waves += 1
            self._busy = True
        yield from self._in()

    @contextmanager
    def evaluation(self, after: int = 0) -> Iterator[None]:
        """Wait until nobody is in, and `after` waves have been let in so far."""
        with self._changed:
            self._waiting.append(after)
            self._changed.wait_for(lambda: not self._busy and self._waves >= after)
            self._waiting.remove(after)
            self._evaluations += 1
            self._busy = True
        yield from self._in()

    @contextmanager
    def other(self) -> Iterator[None]:
        """Wait until nobody is in, with what is neither."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy)
            self._busy = True
        yield from self._in()

    @property
    def _urgent(self) -> bool:
        """Whether an evaluation waits for nothing but its turn."""
        return any(after <= self._waves for after in self._waiting)

    def _in(self) -> Iterator[None]:
        try:
            yield
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
