"""Lengths of time as a person gives them, and the time that is left."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ..errors import bad_input
from ..showing.output import duration

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def seconds(flag: str, text: str | None) -> int | None:
    """`30d` in seconds; None where nothing is given."""
    if text is None:
        return None
    given = re.fullmatch(r"([0-9]{1,9})([smhdw])", text.strip())
    if given is None or int(given[1]) == 0:
        raise bad_input(f"{flag}: a whole number and one of {', '.join(_UNITS)} are needed, got {text!r}; such as 30d")
    return int(given[1]) * _UNITS[given[2]]


def until(text: str | None) -> str:
    """`expires in 30 d` before an RFC 3339 time, `expired` after it."""
    if text is None:
        return "does not expire"
    left = (datetime.fromisoformat(text) - datetime.now(UTC)).total_seconds()
    return f"expires in {duration(left)}" if left > 0 else "expired"
