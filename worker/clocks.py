"""Times in rows, by clocks of which one may have been set back since.

Nobody writes a time that lies further ahead than what it puts off and what the clocks of two machines may differ by.
One that does was written before a clock was set back; whoever waited for it would wait out the whole jump.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, or_
from sqlalchemy.orm import InstrumentedAttribute

from server.clocks import CLOCKS_DIFFER
from server.settings import Settings

Time = InstrumentedAttribute[datetime] | InstrumentedAttribute[datetime | None]


def is_ahead(time: Time, now: datetime, by: timedelta = timedelta()) -> ColumnElement[bool]:
    """Whether a time that lay at most `by` ahead when it was written is of before a clock was set back."""
    return time > now + by + CLOCKS_DIFFER


def is_reached(until: Time, now: datetime, put_off: timedelta) -> ColumnElement[bool]:
    """Whether nothing, or nothing any more, is put off to `until`; `put_off` is the longest that anyone does."""
    return or_(until.is_(None), until <= now, is_ahead(until, now, put_off))


def is_past(time: Time, now: datetime, ago: timedelta) -> ColumnElement[bool]:
    """Whether something that happened then is at least `ago`."""
    return or_(time <= now - ago, is_ahead(time, now))


def lease_of(settings: Settings) -> timedelta:
    """How long a claimed row stays claimed."""
    return timedelta(seconds=settings.lease_s)
