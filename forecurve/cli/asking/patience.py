"""Waiting for what is to come, and for a service that is away for a moment."""

from __future__ import annotations

import errno
import os
import select
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from forecurve.client.errors import ApiError

Answered = TypeVar("Answered")

TRIES = 30
"""Of one look at the service: with seconds between them, longer than its restart takes."""


def patiently(ask: Callable[[], Answered], every_s: float) -> Answered:
    """The answer, asked for again while there is none; at most `TRIES` times.

    Raises:
        ApiError: the service refused, or did not answer the last time either.
    """
    for left in range(TRIES, 0, -1):
        try:
            return ask()
        except ApiError as error:
            if error.code != "unreachable" or left == 1:
                raise
            print("forecurve: no answer; trying again", file=sys.stderr)
            wait(every_s)
    raise AssertionError("unreachable")


def wait(seconds: float) -> None:
    """Sleep; BrokenPipeError as soon as nobody reads any more what is printed (`... | head`), for the next line may be
    long in coming."""
    try:
        printed = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # no file, as in a notebook
        time.sleep(seconds)
        return
    watched = select.poll()
    watched.register(printed, 0)  # nothing but its end
    if watched.poll(1000 * seconds):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
