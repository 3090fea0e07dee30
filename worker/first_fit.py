"""Compiling what fits run on, beside a worker that starts: a first fit that did it would use up most of a task's time.

It is kept on disk (forecurve/science/compiled.py), so that of the next worker it takes a second or two.
"""

from __future__ import annotations

import subprocess
import sys
from threading import Thread
from typing import Any

from celery import Celery, bootsteps

_COMPILE = "import os; os.nice(10); from forecurve.science.warm_up import warm_up; warm_up()"


class WarmUp(bootsteps.StartStopStep):  # type: ignore[misc]
    """In a process of its own: a pool's process must be up at once, and must not be forked while another compiles."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **given: Any) -> None:
        super().__init__(parent, **given)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, parent: Any) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", _COMPILE], stdin=subprocess.DEVNULL)
        Thread(target=self.process.wait, daemon=True).start()  # so that it leaves no zombie

    def stop(self, parent: Any) -> None:
        if self.process is not None:
            self.process.kill()

    terminate = stop


def warm_up_with(app: Celery) -> None:
    """Have every worker of the application do it."""
    app.steps["worker"].add(WarmUp)
