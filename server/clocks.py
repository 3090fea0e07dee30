"""What clocks may be trusted with: those of two machines differ a little, and any may be set back or jump ahead."""

from __future__ import annotations

from datetime import datetime, timedelta

CLOCKS_DIFFER = timedelta(seconds=10)
"""At most, between the machines of one service."""


def was_set_back(moment: datetime, now: datetime) -> bool:
    """Whether something that has happened is further ahead than clocks differ: it was written before a clock was set
    back, and how long ago it was cannot be told from it any more."""
    return moment > now + CLOCKS_DIFFER
