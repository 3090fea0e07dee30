"""Whether a run goes on as what it was begun as: told here where no service says so, or before it knows the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import ClientError

_SHOWN = {"compute_unit": "unit", "budget_compute": "budget", "task": "task", "arm": "arm", "seed": "seed"}
_NAMED_THERE = ("task",)
"""What may be named later at a service that knows the run."""


class Differs(ClientError):
    """The next attempt of a run is to have something else than the run has."""


def check_same(before: Sequence[Mapping[str, Any]], asked: Mapping[str, Any], *, of: str, is_known: bool) -> None:
    """Refuse what the service would: an attempt that it never begins is one whose reports never reach it.

    Args:
        before: what was asked for in the attempts so far, oldest first.
        asked: what is asked for in the next.
        of: what the run is called.
        is_known: a service has made the run.

    Raises:
        Differs: with the argument of `init`, both values and the way out.
    """
    for field, shown in _SHOWN.items():
        if not (is_known and field in _NAMED_THERE):
            _check(shown, _had(before, field), asked.get(field), of)
    for field in ("preset", "recipe"):
        if asked.get(field) is not None and _is_without_recipe(before[0]):
            _check("recipe", [None], asked[field], of)


def _check(shown: str, had: Sequence[Any], given: Any, of: str) -> None:
    if given is None or not had or _plain(given) == _plain(had[0]):
        return
    has = "none" if had[0] is None else repr(had[0])
    raise Differs(f"{shown} is {given!r}, and {of} goes on with what it has, {has}; leave it out, or begin a new run")


def _had(before: Sequence[Mapping[str, Any]], field: str) -> list[Any]:
    """What the run has of a field; nothing where that is not to be known here, as of what a recipe says."""
    told = [request[field] for request in before if request.get(field) is not None]
    return told[:1] or ([None] if _is_without_recipe(before[0]) else [])


def _is_without_recipe(first: Mapping[str, Any]) -> bool:
    """The run was begun here, and without one."""
    return "executor" in first and not any(first.get(field) for field in ("preset", "recipe"))


def _plain(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value  # as the service takes it
