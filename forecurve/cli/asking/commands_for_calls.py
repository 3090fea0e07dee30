"""The service names its own HTTP calls as the way out; at a terminal the command is named that does the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_COMMANDS = {
    "GET /v1/runs": "forecurve run list",
    "GET /v1/sweeps": "forecurve sweep list",
    "POST /v1/sweeps:plan": "forecurve sweep plan",
    "GET /v1/alerts": "forecurve alert list",
    "GET /v1/deliveries": "forecurve alert deliveries",
    "GET /v1/channels": "forecurve channel list",
    "GET /v1/tokens": "forecurve token list --all",
    "GET /v1/recommendations": "forecurve advice list",
    "GET /v1/recipes:presets": "forecurve recipe presets",
}
_OF_ONE = {"PATCH /v1/sweeps/": "forecurve sweep policy {} allocate --budget"}
"""Calls about one thing, which is named at the end."""
_CALL = re.compile(r"`(?P<call>[A-Z]+ /v1/[\w:/-]+)(\?(?P<query>[\w=&-]+))?`")
_FLAGS = {"run_id": "run", "sweep_id": "sweep"}


def in_commands(text: str) -> str:
    """The text with the calls that have a command put as that.

    >>> in_commands("no such run; `GET /v1/runs` lists them")
    'no such run; `forecurve run list` lists them'
    >>> in_commands("`GET /v1/recommendations?run_id=run_1&status=open` has it")
    '`forecurve advice list --run run_1 --status open` has it'
    >>> in_commands("`PATCH /v1/sweeps/swp_1` takes a larger one")
    '`forecurve sweep policy swp_1 allocate --budget` takes a larger one'
    """
    return _CALL.sub(_command, text)


def fault_in_commands(fault: Mapping[str, Any]) -> dict[str, Any]:
    """One entry of a problem's `errors` with its message so."""
    return {**fault, "message": in_commands(str(fault.get("message", "")))}


def _command(found: re.Match[str]) -> str:
    command = _COMMANDS.get(found["call"]) or _of_one(found["call"])
    if command is None:
        return found[0]
    filters = [pair.partition("=") for pair in (found["query"] or "").split("&") if pair]
    return f"`{' '.join([command, *(f'--{_FLAGS.get(name, name)} {value}' for name, _, value in filters)])}`"


def _of_one(call: str) -> str | None:
    start, slash, named = call.rpartition("/")
    command = _OF_ONE.get(start + slash)
    return command and command.format(named)
