"""What a person sees of a run on stderr."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from forecurve.patient_output import is_behind
from forecurve.recipes.schema import Budget
from trainer.terminal import say

BAR_WIDTH = 24
_STOPPED = 2000
"""Characters that a terminal which goes on has read in no time."""


class Progress:
    """A bar of the budget that is rewritten on a terminal; a line for good per evaluation, there and elsewhere."""

    def __init__(self, budget: Budget, stream: TextIO | None = None):
        self._budget, self._stream = budget, stream or sys.stderr
        self._live = self._stream.isatty()
        self._started = time.monotonic()

    def show(self, text: str, step: int, compute: float) -> None:
        """What is going on now; only a terminal sees it, and one that is stopped is to see what is going on later."""
        if self._live and not is_behind(self._stream, by=_STOPPED):
            spent = f"{compute:.1f} of {self._budget.compute:g} {self._budget.unit}"
            say(f"\r\033[K{self._bar(step, compute)}  step {step}  {spent}  {text}", self._stream, end="")

    def evaluation(self, step: int, compute: float, reward: float) -> None:
        """A validation point, for good."""
        passed = time.monotonic() - self._started
        self._line(f"step {step:5d}  compute {compute:8.1f}  pass rate {reward:.3f}  wall {passed:6.1f} s")

    def note(self, text: str) -> None:
        """Something to know, for good; and the last line."""
        self._line(text)

    def _bar(self, step: int, compute: float) -> str:
        """How far the run is towards the limit that it will meet first."""
        share = min(1.0, max(compute / self._budget.compute, step / self._budget.max_steps))
        full = int(share * BAR_WIDTH)
        return f"[{'#' * full}{'.' * (BAR_WIDTH - full)}] {share:4.0%}"

    def _line(self, text: str) -> None:
        say(f"\r\033[K{text}" if self._live else text, self._stream)
