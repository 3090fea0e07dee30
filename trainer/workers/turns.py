"""Whose turn it is at a generator's one engine: evaluations go before waves that wait, whatever was asked first.

A pass rate is worth most when it is new, and a wave that waits keeps a learner busy only later: the learner has the
wave before it. A wave never overtakes an evaluation that was sent before it, however late that one's thread wakes up.
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
        self._waiting = 0  # evaluations
        self._evaluations = 0  # that were let in so far

    @contextmanager
    def wave(self, after: int = 0) -> Iterator[None]:
        """Wait until nobody is in, no evaluation waits, and `after` evaluations have been let in so far."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy and not self._waiting and self._evaluations >= after)
            self._busy = True
        yield from self._in()

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """Wait until nobody is in."""
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: not self._busy)
            self._waiting -= 1
            self._evaluations += 1
            self._busy = True
        yield from self._in()

    def _in(self) -> Iterator[None]:
        try:
            yield
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
