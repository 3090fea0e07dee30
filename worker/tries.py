"""What failed unexpectedly is tried again a few times, at growing distances: the fault may be the machine's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_

from .clocks import Time, is_reached

MOST_TRIES = 6
_FIRST_WAIT, _WAIT_GROWTH, _LONGEST_WAIT = timedelta(minutes=5), 4, timedelta(hours=12)
"""5 min, 20 min, 80 min, 5 h, 12 h: six tries span most of a day, longer than a full disk stays unnoticed."""


@dataclass(frozen=True)
class Tries:
    """Unexpected failures with the same material so far, and when it is tried again; None: no more, or no need."""

    number: int
    again_at: datetime | None

    def said(self, why: str) -> str:
        """`why` it failed, with what is done about it."""
        done = "It is tried again." if self.again_at is not None else f"It was tried {self.number} times."
        return f"{why.rstrip('.')}. {done}"


def tries_after(before: int, now: datetime, *, failed: bool, anew: bool, waited_for: bool = False) -> Tries:
    """The tries, now that there was another. `anew`: with material that nobody had tried; `failed`: unexpectedly;
    `waited_for`: runs are held until it works, so that it is never given up."""
    if not failed:
        return Tries(0, None)
    number = 1 if anew else before + 1
    return Tries(number, now + _wait_after(number) if waited_for or number < MOST_TRIES else None)


def tries_after_death(before: int, now: datetime, *, waited_for: bool = False) -> Tries:
    """The tries, now that another ended with its worker. Once is no sign of a fault: workers are started anew. What
    ends them again and again would take one process after the other."""
    if before == 0:
        return Tries(1, now)
    return tries_after(before, now, failed=True, anew=False, waited_for=waited_for)


def is_due_again(again_at: Time, now: datetime, waited: timedelta = timedelta()) -> ColumnElement[bool]:
    """Whether what failed unexpectedly has been due for another try for `waited`."""
    return and_(again_at.is_not(None), is_reached(again_at, now - waited, _LONGEST_WAIT + waited))


def _wait_after(tries: int) -> timedelta:
    growth: int = _WAIT_GROWTH ** min(tries - 1, MOST_TRIES)  # tries have no end where runs wait
    return min(_FIRST_WAIT * growth, _LONGEST_WAIT)
