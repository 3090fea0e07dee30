"""Waiting for a service that is away or says to come later, no longer in all than patience lasts."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

import httpx

from .errors import ApiError

PATIENCE_S = 30.0
"""Seconds that whoever stands by waits in all."""
log = logging.getLogger("forecurve")

T = TypeVar("T")


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


def retried(call: Callable[[], T], deadline_s: float) -> T:
    """Call until the service answers; a refusal is raised at once, silence at the deadline."""
    deadline, tries = time.monotonic() + deadline_s, 0
    while True:
        try:
            return call()
        except (ApiError, httpx.HTTPError) as error:
            if isinstance(error, ApiError) and not error.is_away:
                raise
            pause = backoff_s(tries, most=5.0)
            if time.monotonic() + pause > deadline:
                if isinstance(error, ApiError):
                    raise
                raise ApiError(
                    f"the service did not answer within {deadline_s:.0f} s: {error}", code="unreachable"
                ) from error
            tries += 1
            time.sleep(pause)


def backoff_s(tries: int, *, least: float = 0.5, most: float = 30.0) -> float:
    """Seconds before try number `tries` + 1: doubling, with jitter over the upper half."""
    return min(most, least * 2.0 ** min(tries, 16)) * random.uniform(0.5, 1.0)
