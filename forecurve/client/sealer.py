"""The thread that puts what was logged on disk, once a second. It never waits for the service."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from .bell import Bell
from .once import Once
from .pending import Pending
from .spool import Spool

GATHER_S = 0.1
"""Rest after each batch: of many evaluations at once, a batch each would be many requests to a slow service."""


class Sealer:
    """Moves what is pending to the spool. Nothing it does reaches the training loop: no exception, no wait.

    Args:
        on_sealed: called after something was put on disk.
        flush_s: seconds between batches.
    """

    def __init__(
        self,
        pending: Pending,
        spool: Spool,
        *,
        once: Once,
        on_sealed: Callable[[], None] = lambda: None,
        flush_s: float = 1.0,
    ):
        self._pending = pending
        self._spool = spool
        self._once = once
        self._on_sealed = on_sealed
        self._flush_s = flush_s
        self._bell = Bell()
        self._closing = threading.Event()
        self._unsealed: deque[tuple[str, dict[str, Any]]] = deque()
        self._taking = False
        self._thread = threading.Thread(target=self._run, name="forecurve-sealer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_sealing(self) -> bool:
        """Something was taken from what is pending and is not on disk yet."""
        return self._taking or bool(self._unsealed)

    @property
    def left(self) -> int:
        """Entries that are only in memory."""
        return self._pending.entries + len(self._unsealed)

    def wake(self) -> None:
        """Something urgent was logged: don't wait for the next second."""
        self._bell.ring()

    def close(self, deadline_s: float) -> bool:
        """Put the rest on disk; true when that was done within the deadline. Nothing may be logged any more."""
        self._closing.set()
        self._bell.ring()
        self._thread.join(deadline_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            self._bell.wait(self._flush_s)
            ending = self._closing.is_set()  # read before sealing: what was logged until `close` must still be taken
            self._once.guard(self._seal)
            if ending and not self._unsealed:
                return
            self._closing.wait(min(GATHER_S, self._flush_s))

    def _seal(self) -> None:
        """Put everything pending on disk. What a full disk does not take is tried again, before more is taken: what is
        pending is bounded, and knows what it may leave out."""
        if self._pending.dropped:
            directory = self._spool.directory
            self._once.say("dropped", f"{directory} does not take all metric points in time; the oldest are left out")
        self._seal_taken()
        self._take()
        self._seal_taken()

    def _seal_taken(self) -> None:
        while self._unsealed:
            self._seal_or_put_aside(*self._unsealed[0])
            self._unsealed.popleft()
            self._on_sealed()

    def _take(self) -> None:
        self._taking = True
        batches, others = self._pending.take()
        self._unsealed.extend(("metrics", body) for body in batches)
        self._unsealed.extend(others)
        self._taking = False

    def _seal_or_put_aside(self, kind: str, body: dict[str, Any]) -> None:
        """What cannot be written as JSON must not hold up what comes after it."""
        try:
            self._seal_one(kind, body)
        except (TypeError, ValueError) as error:
            self._spool.put_aside({"kind": kind, "body": body}, {"detail": str(error), "by": "client"})
            self._once.say("odd", f"a {kind} report is no JSON ({error}); it is kept in {self._spool.rejected}")

    def _seal_one(self, kind: str, body: dict[str, Any]) -> None:
        if kind != "metrics":
            self._spool.seal(kind, body)
        elif self._spool.is_full and not body["evaluations"]:
            self._once.say(
                "full",
                f"the spool {self._spool.directory} is full; metric points are left out until the service takes some",
            )
        else:
            self._spool.seal_batch(body)
