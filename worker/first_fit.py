"""What fits run on is compiled beside a worker that starts; until it is, they run on numpy, and none waits.

A first fit that compiled would use up most of a task's time, and as many would at once as the pool has processes. It is
kept on disk (forecurve/science/compiled.py), so that of the next worker it takes a second or two.
"""

from __future__ import annotations

import logging
import mmap
import subprocess
import sys
from threading import Thread
from typing import Any

from celery import Celery, bootsteps

from forecurve.science.compiled import twins_until

log = logging.getLogger(__name__)

_COMPILE = sys.executable, "-m", "forecurve.science.warm_up"


class WarmUp(bootsteps.StartStopStep):  # type: ignore[misc]
    """In a process of its own: a pool's process must be up at once, and must not be forked while another compiles."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **given: Any) -> None:
        super().__init__(parent, **given)
        self.process: subprocess.Popen[bytes] | None = None
        self._ended = mmap.mmap(-1, 1)  # shared with the pool's processes, which are forked after this
        twins_until(lambda: self._ended[0] > 0)

    def start(self, parent: Any) -> None:
        self.process = subprocess.Popen(_COMPILE, stdin=subprocess.DEVNULL)
        Thread(target=self._note_end, args=(self.process,), daemon=True).start()

    def stop(self, parent: Any) -> None:
        self._ended[0] = 1
        if self.process is not None:
            self.process.kill()

    terminate = stop

    def _note_end(self, process: subprocess.Popen[bytes]) -> None:
        """However it ended: what could not be compiled there fails in a fit, and is told as its failure."""
        status = process.wait()
        if status and not self._ended[0]:
            log.warning("compiling what fits run on ended with status %d", status)
        self._ended[0] = 1


def warm_up_with(app: Celery) -> None:
    """Have every worker of the application do it."""
    app.steps["worker"].add(WarmUp)
