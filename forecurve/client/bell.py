"""What wakes a thread, and may be rung by anyone."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class Bell:
    """As an Event that `wait` clears, with one more promise: a handler of a signal may ring it, though the thread that
    it interrupts was just ringing it too. An Event has a lock, for which that handler would wait for ever."""

    def __init__(self) -> None:
        self._rung: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        if self._rung.empty():
            self._rung.put(None)

    def wait(self, seconds: float) -> None:
        """Until it is rung, at most so long."""
        try:
            self._rung.get(timeout=max(0.0, seconds))
            while True:
                self._rung.get_nowait()
        except Empty:
            return
