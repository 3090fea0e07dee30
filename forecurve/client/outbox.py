"""From memory to the service: what was logged is put on disk by one thread and sent from there by another.

log()            sealer                 sender
  └─► pending ─────────► spool (disk) ─────────► service
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from .once import Once
from .pending import Pending
from .sealer import Sealer
from .sender import Sender
from .spool import Spool
from .transport import Transport

SEAL_S = 5.0
"""What was logged is given this long to reach the disk, also when a run's end is to wait for less."""


@dataclass(frozen=True)
class Left:
    """Entries at the end that the service has not taken, those that not even the disk has, and those that the service
    refused for good, with what it said."""

    on_disk: int
    in_memory: int
    refused: int = 0
    refusal: str = ""


class Outbox:
    """Owns the spool of a run and the two threads on it.

    Args:
        transport: None keeps everything on disk (offline).
        on_over: called with the reason when the service says that the run or the attempt is over.
        flush_s: seconds between batches.
    """

    def __init__(
        self,
        pending: Pending,
        spool: Spool,
        transport: Transport | None,
        *,
        once: Once,
        on_over: Callable[[str], None] = lambda reason: None,
        flush_s: float = 1.0,
    ):
        self.spool = spool
        self.sender = Sender(spool, transport, once=once, on_over=on_over, flush_s=flush_s) if transport else None
        wake = self.sender.wake if self.sender else lambda: None
        self.sealer = Sealer(pending, spool, once=once, on_sealed=wake, flush_s=flush_s)

    @property
    def unsent(self) -> int:
        """Entries that the service has not taken yet."""
        in_memory = self.sealer.left  # first, as reports go: one that moves meanwhile is counted twice, never missed
        return in_memory + self.spool.waiting

    @property
    def left(self) -> Left:
        """What has not arrived by now."""
        said = (self.sender.refused, self.sender.refusal) if self.sender else ()
        return Left(self.spool.waiting, self.sealer.left, *said)

    def start(self) -> None:
        self.sealer.start()
        if self.sender:
            self.sender.wake()
            self.sender.start()

    def close(self, deadline_s: float) -> Left:
        """Put the rest on disk, send it within the deadline, and let others have the spool."""
        deadline = time.monotonic() + deadline_s
        sealed = self.sealer.close(max(deadline_s / 2, SEAL_S))
        if self.sender:
            self.sender.close(deadline - time.monotonic())
        left = self.left
        if sealed:
            self.spool.close()  # else the sealer, which goes on as long as the process does, still writes
        return left
