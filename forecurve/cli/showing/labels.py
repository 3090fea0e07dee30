"""Tags and notes at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forecurve.signs import visible


def note_lines(thing: Mapping[str, Any]) -> list[str]:
    """The note of a run or a sweep; none where it has none."""
    return [visible(line.expandtabs(4)) for line in (thing.get("note") or "").splitlines()]


def tags_of(thing: Mapping[str, Any]) -> str | None:
    """Its tags on one line; None where it has none."""
    return ", ".join(thing.get("tags") or ()) or None
