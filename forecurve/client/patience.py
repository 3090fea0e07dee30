"""Waiting when the service says to come later: as long as it says, and no longer in all than patience lasts."""

from __future__ import annotations

import logging
import time

PATIENCE_S = 30.0
"""Seconds that whoever stands by waits in all."""
log = logging.getLogger("forecurve")


class Patience:
    """What is left of the seconds that may be waited in all."""

    def __init__(self, seconds: float):
        self._left = seconds

    def waits(self, pause: float | None, why: str) -> bool:
        """Waits as long as the service asks; False, at once, where it names no time or patience is too short."""
        if pause is None or self._left <= 0 or pause > self._left:
            return False
        log.warning("forecurve: %s; asking again in %.0f s", " ".join(why.split()).rstrip("."), pause)
        self._left -= max(pause, 1.0)  # so that 0, again and again, comes to an end
        time.sleep(pause)
        return True
