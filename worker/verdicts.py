"""What was last said of watched runs, in the memory of this process: judging one more evaluation goes on from it.

Nothing hangs on what is kept. `watch` takes of an earlier verdict what is the same now, so that another worker's
process, an attempt that went back, or a run that was pushed out only has more to judge.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from forecurve.science import Watch

MOST = 32
"""Runs; a verdict takes about 1.5 MB after 500 evaluations, 2.5 MB after 3,000."""


class Verdicts:
    """The verdicts on the `most` runs that were judged last. Threads may share it."""

    def __init__(self, most: int = MOST):
        self._most = most
        self._kept: OrderedDict[str, Watch] = OrderedDict()
        self._turn = threading.Lock()

    def last(self, run_id: str) -> Watch | None:
        """What was last said of a run here, if it is still known."""
        with self._turn:
            return self._kept.get(run_id)

    def keep(self, run_id: str, verdict: Watch) -> None:
        """To go on from the next time."""
        with self._turn:
            self._kept[run_id] = verdict
            self._kept.move_to_end(run_id)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
