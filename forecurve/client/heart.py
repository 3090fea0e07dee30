"""The heartbeat: says that training is alive, hears whether it should stop and which checkpoints it should leave."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

from .errors import ApiError
from .transport import Transport

log = logging.getLogger("forecurve")

FIRST_INTERVAL_S = 5.0

DENIED_GRACE_S = 600.0
"""How long the token of a launched attempt is refused, and by nobody else than the service, before the attempt takes it
that it was given up: tokens end days after their attempt did."""


class Heart:
    """A thread that beats at the interval the service asks for. Silence of the service never stops training.

    Args:
        on_stop: called with the reason when the service asks the run to stop.
        on_held: called with the steps of the checkpoints that forks have yet to begin from.
    """

    def __init__(
        self,
        transport: Transport,
        on_stop: Callable[[str], None],
        on_held: Callable[[frozenset[int]], None],
        interval_s: float = FIRST_INTERVAL_S,
    ):
        self._transport = transport
        self._on_stop, self._on_held = on_stop, on_held
        self._interval_s = interval_s
        self._patience_s = math.inf
        self._denied_since: float | None = None
        self._progress: dict[str, Any] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="forecurve-heart", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop_when_denied(self) -> None:
        """Take it for a stop when the token is refused for DENIED_GRACE_S. Before the start."""
        self._patience_s = DENIED_GRACE_S

    def note(self, progress: dict[str, Any]) -> None:
        """What the next beat says: step, compute, message."""
        self._progress = progress

    def close(self, deadline_s: float = 1.0) -> None:
        self._stop.set()
        self._thread.join(deadline_s)

    def _run(self) -> None:
        while True:
            self.beat()
            if self._stop.wait(self._interval_s):
                return

    def beat(self) -> None:
        """One beat; any trouble is only logged."""
        try:
            answer = self._transport.beat(dict(self._progress))
            self._denied_since = None
            self._obey(answer)
        except (ApiError, httpx.HTTPError) as error:
            log.debug("forecurve: no answer to a heartbeat: %s", error)
            if isinstance(error, ApiError) and error.code in ("superseded", "over"):
                self._on_stop(error.detail)
            if isinstance(error, ApiError) and error.status == 401 and "code" in error.body:
                self._note_denied(error.detail)
        except Exception as error:  # noqa: BLE001 - an odd answer must not end the heartbeat
            log.debug("forecurve: a heartbeat's answer could not be read: %s", error)

    def _note_denied(self, detail: str) -> None:
        """While the service is away nobody can tell: that neither counts nor lets it off."""
        now = time.monotonic()
        self._denied_since = now if self._denied_since is None else self._denied_since
        if now - self._denied_since >= self._patience_s:
            since = f"for {self._patience_s:g} s the service has refused the token of this attempt ({detail})"
            self._on_stop(f"{since}; write a checkpoint and exit")

    def _obey(self, answer: dict[str, Any]) -> None:
        interval = answer.get("interval_s")
        if isinstance(interval, int | float) and 0 < interval <= 3600:
            self._interval_s = float(interval)
        if answer.get("stop"):
            self._on_stop(str(answer.get("reason") or "the service asked the run to stop"))
        self._on_held(frozenset(int(step) for step in answer.get("held_steps") or ()))
