"""Waiting for a service that is away for a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeVar

from forecurve.client.errors import ApiError

Answered = TypeVar("Answered")


def patiently(ask: Callable[[], Answered], every_s: float, patience: int = 30) -> Answered:
    """The answer, asked for again while there is none; at most `patience` times."""
    for left in range(patience, 0, -1):
        try:
            return ask()
        except ApiError as error:
            if error.code != "unreachable" or left == 1:
                raise
            print("forecurve: no answer; trying again", file=sys.stderr)
            time.sleep(every_s)
    raise AssertionError("unreachable")
