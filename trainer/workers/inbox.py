"""What a generator knows of newer weights: which were offered, and whether they come by broadcast or are pulled.

Several threads meet here: one hears offers, one receives broadcasts, one pulls what is offered ahead of its use, and
one generates and takes what there is. So generation does not stand still while weights are on their way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from trainer.errors import WorkerLost

WEIGHTS_TIMEOUT_S = 120.0

Weights = Mapping[str, Any]


class Inbox:
    """The newest offer, and weights that arrived by themselves.

    Args:
        pull: the weights of a reference, from the object store.
        timeout_s: how long to wait for weights that must come.
        ahead: has another thread do something, one thing after the other; None where offers are pulled when they are
            asked for.
    """

    def __init__(
        self,
        pull: Callable[[Any], Weights],
        timeout_s: float = WEIGHTS_TIMEOUT_S,
        ahead: Callable[[Callable[[], None]], Any] | None = None,
    ):
        self._pull, self._timeout_s, self._ahead = pull, timeout_s, ahead
        self._changed = threading.Condition()
        self._offered, self._epoch, self._failed_epoch = 0, 0, 0
        self._fetches = 0  # asked of the other thread and not done
        self._given_up = -1  # newest version that did not come in time
        self._reference: Any = None
        self._arrived = -1
        self._weights: Weights | None = None

    def offer(self, version: int, reference: Any, epoch: int = 0) -> None:
        """Weights of `version` exist; with an `epoch`, that group's broadcast is to bring them."""
        with self._changed:
            if version > self._offered or self._reference is None:
                self._offered, self._reference, self._epoch = version, reference, epoch
                if self._ahead is not None and not self._by_broadcast:
                    self._fetches += 1
                    self._ahead(self._fetch)
            self._changed.notify_all()

    def arrive(self, version: int, weights: Weights) -> None:
        """A broadcast has brought these. It may come before its offer."""
        with self._changed:
            self._arrived, self._weights = version, weights
            self._changed.notify_all()

    def fail(self, epoch: int) -> None:
        """Nothing more will come by this group's broadcasts: what they were to bring is pulled."""
        with self._changed:
            self._failed_epoch = max(self._failed_epoch, epoch)
            self._changed.notify_all()

    def wait_for(self, version: int) -> None:
        """Return when weights of `version` or newer can be had.

        Raises:
            WorkerLost: none were offered in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._offered >= version, self._timeout_s):
                raise WorkerLost(f"no weights of version {version} came within {self._timeout_s:.0f} s")
            self._await_arrival(version)

    def newest(self, held: int, at_least: int = 0) -> tuple[int, Weights] | None:
        """Newer weights than `held`, if there are any. Waits only if those held are older than `at_least`."""
        if self._reference is None or self._offered <= held:
            return None
        with self._changed:
            if held < at_least:
                self._await_arrival(at_least)
            if self._arrived <= held:
                self._weights = None  # the engine has its copy
            if self._weights is not None and (self._arrived >= self._offered or self._expecting):
                return self._arrived, self._weights
            if self._expecting:
                return None
            version, reference = self._offered, self._reference
        return version, self._pull(reference)

    def _fetch(self) -> None:
        """Pull the newest offer unless it is there or comes by itself. Whoever needs it is told of a failure."""
        with self._changed:
            version, reference = self._offered, self._reference
            wanted = self._arrived < version and not self._by_broadcast
        weights = None
        with suppress(Exception):
            weights = self._pull(reference) if wanted else None
        with self._changed:
            self._fetches -= 1
            if weights is not None and version > self._arrived:
                self._arrived, self._weights = version, weights
            self._changed.notify_all()

    @property
    def _by_broadcast(self) -> bool:
        """Whether the offered version is to come by broadcast."""
        return self._epoch > self._failed_epoch

    @property
    def _expecting(self) -> bool:
        """True while the offered version is on its way to us."""
        on_its_way = self._by_broadcast or self._fetches > 0
        return on_its_way and max(self._arrived, self._given_up) < self._offered

    def _await_arrival(self, version: int) -> None:
        """Until `version` or a newer one has arrived, or must be pulled; what does not come in time is given up."""
        if not self._changed.wait_for(lambda: self._arrived >= version or not self._expecting, self._timeout_s):
            self._failed_epoch = max(self._failed_epoch, self._epoch)
            self._given_up = self._offered
