"""The thread that sends what is on disk, oldest first. While it waits for an answer, the sealer goes on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from .once import Once
from .patience import backoff_s
from .spool import Entry, Spool
from .transport import Answer, Later, Refused, Transport

log = logging.getLogger("forecurve")

DENIED_S = 30.0
"""Seconds between tries while access is refused."""


class Sender:
    """Empties the spool. Nothing it does reaches the training loop: no exception, no wait.

    Args:
        on_over: called with the reason when the service says that the run or the attempt is over.
        flush_s: seconds between looks at the spool.
        until_empty: end by itself, and close the spool, once everything on disk was sent: nothing more will be logged.
    """

    def __init__(
        self,
        spool: Spool,
        transport: Transport,
        *,
        once: Once,
        on_over: Callable[[str], None] = lambda reason: None,
        flush_s: float = 1.0,
        until_empty: bool = False,
    ):
        self._spool = spool
        self._transport = transport
        self._once = once
        self._on_over = on_over
        self._flush_s = flush_s
        self._until_empty = until_empty
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._given_up = threading.Event()
        self._tries = 0
        self._not_before = 0.0
        self.refused = 0
        self.refusal = ""
        """How many entries the service refused for good, and what it said of the last."""
        self._thread = threading.Thread(target=self.run, name="forecurve-sender", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Something was put on disk."""
        self._wake.set()

    def close(self, deadline_s: float) -> None:
        """Send what is on disk within the deadline and stop. A thread that waits for an answer is left behind: it ends
        when that comes, and changes nothing in a spool that was closed meanwhile."""
        self.hurry()
        self._thread.join(max(0.0, deadline_s))
        self.give_up()

    def hurry(self) -> None:
        """End once all is sent: nothing more is put on disk, and somebody waits for it."""
        self._closing.set()
        self._not_before = min(self._not_before, time.monotonic() + 0.1)
        self._wake.set()

    def give_up(self) -> None:
        """End now; an answer that is still to come no longer counts."""
        self._given_up.set()
        self._wake.set()

    def run(self) -> None:
        """Send until it is closed, or all is sent; what `start` has a thread do."""
        while not self._given_up.is_set():
            self._wake.wait(self._pause())
            self._wake.clear()
            ending = self._until_empty or self._closing.is_set()
            self._once.guard(self._send_all)
            if ending and not self._spool.waiting:
                break
        if self._until_empty:
            self._spool.close()

    def _pause(self) -> float:
        """Seconds until there is something to do."""
        if not self._closing.is_set():
            return self._flush_s
        waited = self._not_before - time.monotonic()
        return max(0.05, min(waited, self._flush_s)) if self._spool.waiting else 0.0

    def _send_all(self) -> None:
        while time.monotonic() >= self._not_before and not self._given_up.is_set():
            entry = self._spool.first()
            if entry is None:
                return
            answer = self._transport.send(entry)
            if self._given_up.is_set():
                return  # the run has said what is left; its answer to this one no longer counts
            self._note(answer)
            if isinstance(answer, Later):
                return
            if isinstance(answer, Refused):
                self._refuse(entry, answer)
            else:
                self._spool.settle(entry)

    def _note(self, answer: Answer) -> None:
        """Set when to try again; say once that the service is away, and once that it is back."""
        if not isinstance(answer, Later):
            if self._tries:
                log.warning(
                    "forecurve: the service answers again; sending %d entries from the spool", self._spool.waiting
                )
                self._once.forget("away")
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
        text = f"the service did not take a report ({answer.reason}); {kept}"
        self._once.say("denied" if answer.denied else "away", text)

    def _refuse(self, entry: Entry, answer: Refused) -> None:
        """Put the entry aside, or let its parts be tried."""
        if answer.in_part and self._spool.divide(entry):
            return
        if answer.over:
            self._on_over(answer.detail)
        self.refused, self.refusal = self.refused + 1, answer.detail
        kept = f"it is kept in {self._spool.rejected}"
        self._once.say("refused", f"the service refused a {entry.kind} report: {answer.detail}; {kept}")
        self._spool.reject(entry, answer.answer)
