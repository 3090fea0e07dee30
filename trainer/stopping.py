"""Stopping on request: SIGTERM and Ctrl-C set a flag, which the controller reads between steps."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class StopRequest:
    """A reason to stop, once there is one. Calling it gives the reason or None."""

    def __init__(self) -> None:
        self._reason: str | None = None

    def __call__(self) -> str | None:
        """The reason, or None."""
        return self._reason

    def ask(self, reason: str) -> None:
        """Ask for a stop; the first reason stays."""
        self._reason = self._reason or reason

    def on_signals(self) -> None:
        """From here on SIGTERM and SIGINT ask for a stop; a second SIGINT interrupts at once.

        To be called after Ray has started, which installs handlers of its own.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        signal.signal(signal.SIGTERM, self._handle)
        signal.signal(signal.SIGINT, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self._reason:
            raise KeyboardInterrupt
        self.ask(f"{signal.Signals(number).name} received")
