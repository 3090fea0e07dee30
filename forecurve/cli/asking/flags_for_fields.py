"""The service names the fields of its bodies; at a terminal the flag or the argument is named that gave them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

_GIVEN_BY = {
    "add_tags": ("tags",),
    "alert_id": ("alert_id", "alert_ids"),
    "budget_compute": ("budget",),
    "checkpoint_id": ("checkpoint",),
    "compute_unit": ("unit",),
    "expires_in_s": ("expires",),
    "note": ("note", "text"),
    "recommendation_id": ("advice_id",),
    "remove_tags": ("remove",),
    "run_id": ("run_id", "run_ids", "run"),
    "scopes": ("scope",),
    "sweep_id": ("sweep_id", "sweep"),
    "task": ("task", "name"),
    "url": ("to",),
}
"""Fields to the parameters of commands that give them, where those are called otherwise."""


def called_by(arguments: Sequence[str]) -> Callable[[str], str]:
    """What the command of these arguments calls a field: `--tag`, `RUN`. The field where no parameter of it was given:
    it may come from a file."""
    parameters = {parameter.name: parameter for parameter in _command(arguments).params}

    def called(field: str) -> str:
        whole = re.sub(r"\.\d+$", "", field)
        found = (parameters.get(name) for name in _GIVEN_BY.get(whole, (whole,)))
        told = (name_of(each) for each in found if each is not None and _is_given(each, arguments))
        return next((name for name in told if name), field)

    return called


def in_flags(text: str, faults: Iterable[Mapping[str, Any]], called: Callable[[str], str]) -> str:
    """The text of an error that begins with the field at fault, so."""
    fields = (str(fault.get("field")) for fault in faults)
    return next((called(field) + text[len(field) :] for field in fields if text.startswith(f"{field}: ")), text)


def name_of(parameter: Any) -> str | None:
    """As it is called on a command line: `--limit`, `RUN`."""
    if parameter is None:
        return None
    flags = [name for name in parameter.opts if name.startswith("--")]
    return str(flags[0] if flags else parameter.metavar or parameter.name).strip("[].")


def _command(arguments: Sequence[str]) -> Any:
    from ..app import build

    command = build()
    for argument in arguments:
        below = getattr(command, "commands", {}).get(argument)
        if below is None:
            break
        command = below
    return command


def _is_given(parameter: Any, arguments: Sequence[str]) -> bool:
    flags = [name for name in parameter.opts if name.startswith("-")]
    return not flags or any(argument.partition("=")[0] in flags for argument in arguments)
