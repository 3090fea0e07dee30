"""`forecurve run tag`, `run note`, `sweep tag`, `sweep note`: what people write on runs and sweeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from ..asking.service import Answer, Service, asks_service
from ..given.flags import RunId, SweepId

Label = Callable[..., dict[str, Any]]

GivenTags = Annotated[list[str] | None, typer.Argument(metavar="[TAG]...", help="Tags that it gets; none shows them.")]
Removed = Annotated[list[str] | None, typer.Option("--remove", help="Take this tag away; may be repeated.")]
NoTags = Annotated[bool, typer.Option("--none", help="Take all tags away.")]
GivenNote = Annotated[str | None, typer.Argument(metavar="[TEXT]", help="The note, `-` for stdin; none shows it.")]
NoNote = Annotated[bool, typer.Option("--none", help="Take the note away.")]


@asks_service
def tag_run(
    service: Service, run_id: RunId, tags: GivenTags = None, remove: Removed = None, none: NoTags = False
) -> Answer:
    """Give a run tags, or take them away; without any, show those it has. `run list --tag` finds it by them."""
    change = _retagged(tags, remove, none)
    return _tags(service.api.label_run(run_id, **change) if change else service.api.run(run_id))


@asks_service
def tag_sweep(
    service: Service, sweep_id: SweepId, tags: GivenTags = None, remove: Removed = None, none: NoTags = False
) -> Answer:
    """Give a sweep tags, or take them away; without any, show those it has. `sweep list --tag` finds it by them."""
    change = _retagged(tags, remove, none)
    return _tags(service.api.label_sweep(sweep_id, **change) if change else service.api.sweep(sweep_id))


@asks_service
def note_run(service: Service, run_id: RunId, text: GivenNote = None, none: NoNote = False) -> Answer:
    """Write a note on a run: what it is for, what came of it. Without TEXT, show it."""
    change = _renoted(text, none)
    return _note(service.api.label_run(run_id, **change) if change else service.api.run(run_id))


@asks_service
def note_sweep(service: Service, sweep_id: SweepId, text: GivenNote = None, none: NoNote = False) -> Answer:
    """Write a note on a sweep: what it asks, what came of it. Without TEXT, show it."""
    change = _renoted(text, none)
    return _note(service.api.label_sweep(sweep_id, **change) if change else service.api.sweep(sweep_id))


def _retagged(tags: list[str] | None, remove: list[str] | None, none: bool) -> dict[str, Any]:
    from ..errors import bad_input

    if none and (tags or remove):
        raise bad_input("--none: it is given with tags; leave one of them out")
    if none:
        return {"tags": []}
    change = {"add_tags": tags, "remove_tags": remove}
    return {field: given for field, given in change.items() if given}


def _renoted(text: str | None, none: bool) -> dict[str, Any]:
    import sys

    from ..errors import bad_input

    if none and text is not None:
        raise bad_input("--none: it is given with a text; leave one of them out")
    if none:
        return {"note": None}
    return {} if text is None else {"note": sys.stdin.read() if text == "-" else text}


def _tags(thing: dict[str, Any]) -> Answer:
    return Answer(thing, f"{thing['id']}  {', '.join(thing['tags']) or 'no tags'}")


def _note(thing: dict[str, Any]) -> Answer:
    from ..showing.labels import note_lines

    return Answer(thing, "\n".join(note_lines(thing)) or f"{thing['id']} has no note")
