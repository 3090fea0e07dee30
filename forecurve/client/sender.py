"""The background thread: once a second it puts what was logged on disk and sends what is on disk, oldest first."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from .pending import Pending
from .spool import Entry, Spool
from .transport import Answer, Later, Refused, Transport, backoff_s

log = logging.getLogger("forecurve")

DENIED_S = 30.0
"""Seconds between tries while access is refused."""
MAX_UNSEALED = 1000
"""Batches kept in memory while the disk takes nothing."""


class Sender:
    """Owns the spool. Nothing it does reaches the training loop: no exception, no wait.

    Args:
        transport: None keeps everything on disk (offline).
        on_over: called with the reason when the service says that the run or the attempt is over.
        flush_s: seconds between batches.
        until_empty: end by itself once everything on disk was sent: nothing more will be logged.
    """

    def __init__(
        self,
        pending: Pending,
        spool: Spool,
        transport: Transport | None,
        *,
        on_over: Callable[[str], None] = lambda reason: None,
        flush_s: float = 1.0,
        until_empty: bool = False,
    ):
        self._pending = pending
        self._spool = spool
        self._transport = transport
        self._on_over = on_over
        self._flush_s = flush_s
        self._until_empty = until_empty
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._unsealed: deque[tuple[str, dict[str, Any]]] = deque()
        self._sealing = False
        self._tries = 0
        self._not_before = 0.0
        self._said: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="forecurve-sender", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_sealing(self) -> bool:
        """Something was taken from what is pending and is not on disk yet."""
        return self._sealing or bool(self._unsealed)

    def wake(self) -> None:
        """Something urgent was logged: don't wait for the next second."""
        self._wake.set()

    def close(self, deadline_s: float) -> int:
        """Put the rest on disk, send it within the deadline, stop. Returns how many entries are still unsent."""
        self._closing.set()
        self._not_before = min(self._not_before, time.monotonic() + 0.1)
        self._wake.set()
        self._thread.join(deadline_s)
        left = self._spool.waiting
        if self._thread.is_alive():
            self._transport = None  # the thread ends at its next step; what is unsent stays on disk
            self._wake.set()
            self._thread.join(1.0)
        return left

    def _run(self) -> None:
        while True:
            self._wake.wait(self._pause())
            self._wake.clear()
            ending = self._until_empty or self._closing.is_set()
            self._guard(self._step)
            if (ending and not self._spool.waiting) or (self._closing.is_set() and self._transport is None):
                break
        self._spool.close()

    def _pause(self) -> float:
        """Seconds until there is something to do; while the service is away, batches still go to disk."""
        waited = self._not_before - time.monotonic()
        if self._closing.is_set():
            return max(0.0, min(waited, self._flush_s)) if self._spool.waiting else 0.0
        return self._flush_s

    def _step(self) -> None:
        self._seal()
        transport = self._transport
        while transport is not None and time.monotonic() >= self._not_before:
            entry = self._spool.first()
            if entry is None:
                break
            answer = transport.send(entry)
            self._note(answer)
            if isinstance(answer, Later):
                break
            if isinstance(answer, Refused):
                self._refuse(entry, answer)
            else:
                self._spool.settle(entry)

    def _seal(self) -> None:
        """Put everything pending on disk. What a full disk does not take is kept in memory and tried again."""
        self._sealing = True
        batches, others = self._pending.take()
        self._unsealed.extend(("metrics", body) for body in batches)
        self._unsealed.extend(others)
        self._sealing = False
        while len(self._unsealed) > MAX_UNSEALED:
            self._pending.dropped += len(self._unsealed.popleft()[1].get("points", ()))
        while self._unsealed:
            self._seal_or_put_aside(*self._unsealed[0])
            self._unsealed.popleft()

    def _seal_or_put_aside(self, kind: str, body: dict[str, Any]) -> None:
        """What cannot be written as JSON must not hold up what comes after it."""
        try:
            self._seal_one(kind, body)
        except (TypeError, ValueError) as error:
            self._spool.put_aside({"kind": kind, "body": body}, {"detail": str(error), "by": "client"})
            self.say("odd", f"a {kind} report is no JSON ({error}); it is kept in {self._spool.rejected}")

    def _seal_one(self, kind: str, body: dict[str, Any]) -> None:
        if kind != "metrics":
            self._spool.seal(kind, body)
        elif self._spool.is_full and not body["evaluations"]:
            self._pending.dropped += len(body["points"])
            self.say(
                "full",
                f"the spool {self._spool.directory} is full; metric points are left out until the service takes some",
            )
        else:
            self._spool.seal_batch(body)

    def _note(self, answer: Answer) -> None:
        """Set when to try again; say once that the service is away, and once that it is back."""
        if not isinstance(answer, Later):
            if self._tries:
                log.warning(
                    "forecurve: the service answers again; sending %d entries from the spool", self._spool.waiting
                )
                self._said.discard("away")
            self._tries, self._not_before = 0, 0.0
            return
        self._tries += 1
        pause = (
            answer.after_s if answer.after_s is not None else DENIED_S if answer.denied else backoff_s(self._tries - 1)
        )
        if self._closing.is_set():
            pause = min(pause, 2.0)  # the process is waiting for us
        self._not_before = time.monotonic() + pause
        kept = f"training goes on, what is logged is kept in {self._spool.directory}"
        self.say("denied" if answer.denied else "away", f"the service did not take a report ({answer.reason}); {kept}")

    def _refuse(self, entry: Entry, answer: Refused) -> None:
        """Put the entry aside, or let its parts be tried."""
        if answer.in_part and self._spool.divide(entry):
            return
        detail = str(answer.answer.get("detail", answer.answer))
        if answer.over:
            self._on_over(detail)
        self.say(
            "refused", f"the service refused a {entry.kind} report: {detail}; it is kept in {self._spool.rejected}"
        )
        self._spool.reject(entry, answer.answer)

    def say(self, key: str, text: str) -> None:
        """Log a warning once per kind of trouble."""
        if key not in self._said:
            self._said.add(key)
            log.warning("forecurve: %s", text)

    def _guard(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a full disk or a bug here must never reach the training loop
            self.say(
                f"bug-{type(error).__name__}", f"reporting failed ({type(error).__name__}: {error}); training goes on"
            )
