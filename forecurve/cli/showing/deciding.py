"""What would decide the arms of a sweep, at a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from forecurve.digits import as_given
from forecurve.signs import visible


def further(sweep: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The undecided arms that further seeds would decide."""
    return [arm for arm in (sweep.get("comparison") or {}).get("arms", []) if arm.get("further")]


def told_how(sweep: Mapping[str, Any], arm: Mapping[str, Any]) -> str:
    """The command that queues them, and what it costs."""
    more = arm["further"]
    cost = f", {as_given(more['compute'])} {sweep['comparison']['unit']}" if more["compute"] else ""
    command = f"forecurve sweep add-seeds {sweep['id']} --decide {shlex.quote(arm['arm'])}"
    return visible(f"To decide {arm['arm']} ({more['runs']} run{'' if more['runs'] == 1 else 's'}{cost}): {command}")
