"""What a person sees of a run on stderr."""

from __future__ import annotations

import sys
import time


class Progress:
    """One line on stderr that is rewritten on a terminal; elsewhere a line per evaluation."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._started = time.monotonic()

    def show(self, text: str, step: int, compute: float) -> None:
        """What is going on now; only a terminal sees it."""
        if self._live:
            print(f"\r\033[Kstep {step}  compute {compute:.1f}  {text}", end="", file=sys.stderr, flush=True)

    def evaluation(self, step: int, compute: float, reward: float) -> None:
        """A validation point, for good."""
        passed = time.monotonic() - self._started
        self._line(f"step {step:5d}  compute {compute:8.1f}  pass rate {reward:.3f}  wall {passed:6.1f} s")

    def end(self, text: str) -> None:
        """The last line."""
        self._line(text)

    def _line(self, text: str) -> None:
        print(f"\r\033[K{text}" if self._live else text, file=sys.stderr, flush=True)
