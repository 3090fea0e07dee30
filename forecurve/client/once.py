"""Warnings of work in the background: each kind of trouble is said once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from forecurve.signs import visible

log = logging.getLogger("forecurve")


class Once:
    """Remembers what was said."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, key: str, text: str) -> None:
        """Log a warning unless one of this kind was logged."""
        if key not in self._said:
            self._said.add(key)
            log.warning("forecurve: %s", visible(text))  # names that users give may have signs that a terminal obeys

    def forget(self, key: str) -> None:
        """The trouble is over: say it again when it comes back."""
        self._said.discard(key)

    def guard(self, work: Callable[[], Any]) -> None:
        """Run `work`; a full disk or a bug in it must never reach the training loop."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the promise of this method
            name = type(error).__name__
            self.say(f"bug-{name}", f"reporting failed ({name}: {error}); training goes on")
