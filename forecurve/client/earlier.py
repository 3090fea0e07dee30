"""What earlier attempts of a run could not send: the current one hands it in, since from them it is no longer taken.

The reports keep the number of the attempt that made them, so the service has what it would have had without the
outage: what a new attempt supersedes of an older one is decided there, for late reports as for those that came in time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from .lock import InUse
from .once import Once
from .sender import Sender
from .spool import Spool
from .transport import Transport

log = logging.getLogger("forecurve")


class Earlier:
    """Sends the spools of earlier attempts in the background, one after the other; each is emptied where it lies.

    Args:
        before: where the reports of each earlier attempt are kept, and its number.
        door: the way in for the reports of an earlier attempt, by its number.
    """

    def __init__(self, before: Iterable[tuple[Path, int]], door: Callable[[int], Transport]):
        self._spools: list[Spool] = []
        self._senders: list[Sender] = []
        self._thread = threading.Thread(target=self._run, name="forecurve-earlier", daemon=True)
        for directory, number in before:
            spool = _left(directory)
            if spool is not None:
                self._spools.append(spool)
                self._senders.append(Sender(spool, door(number), once=Once(), until_empty=True))

    @property
    def waiting(self) -> int:
        """Reports that the service has not taken yet."""
        return sum(spool.waiting for spool in self._spools)

    def start(self) -> None:
        if not self._senders:
            return
        log.warning("forecurve: sending %d reports that earlier attempts could not send", self.waiting)
        self._thread.start()

    def close(self, deadline_s: float) -> None:
        """Send the rest within the deadline; what is not taken stays on disk for the next attempt."""
        for sender in self._senders:
            sender.hurry()
        if self._thread.is_alive():
            self._thread.join(max(0.0, deadline_s))
        for sender, spool in zip(self._senders, self._spools, strict=True):
            sender.give_up()
            spool.close()

    def _run(self) -> None:
        for sender in self._senders:
            sender.wake()
            sender.run()


def _left(directory: Path) -> Spool | None:
    """The spool of an attempt that has left something unsent."""
    if not directory.is_dir():
        return None
    try:
        spool = Spool(directory)
    except (InUse, OSError) as error:
        log.warning("forecurve: what %s holds is not sent: %s", directory, error)
        return None
    if spool.waiting:
        return spool
    spool.close()
    return None
