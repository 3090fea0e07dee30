"""Tags and a note as bodies of requests have them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from forecurve.limits import MOST_NOTE, MOST_TAG, MOST_TAGS
from forecurve.recipes import Name
from forecurve.signs import is_obeyed
from server.bodies import Body


def _without_comma(tag: str) -> str:
    if "," in tag:
        raise ValueError("has a comma, which stands between tags; give two of them, or write it without")
    return tag


def _each_once(tags: list[str]) -> list[str]:
    return list(dict.fromkeys(tags))


def _readable(note: str) -> str:
    lines = note.replace("\r\n", "\n")
    obeyed = next((sign for sign in lines if is_obeyed(sign) and sign not in "\n\t"), None)
    if obeyed is not None:  # it would reach terminals
        raise ValueError(f"has {obeyed!a}, which is a command to a terminal and no sign; write it without")
    return lines


Tag = Annotated[Name, Field(max_length=MOST_TAG), AfterValidator(_without_comma)]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS), AfterValidator(_each_once)]
Note = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MOST_NOTE), AfterValidator(_readable)]


class Labelled(Body):
    """What a new run or sweep may be given to be found by; no forecast and no comparison goes by it."""

    tags: Tags = Field([], description="To find it by.")
    note: Note | None = Field(None, description="What it is for, in words.")


class LabelChange(Body):
    """What of the labels is to change; what is left out stays."""

    tags: Tags = Field([], description="All that it has from now on.")
    add_tags: Tags = Field([], description="Those that it gets beside the ones that it has; not with `tags`.")
    remove_tags: Tags = Field([], description="Those that it loses, where it has them; not with `tags`.")
    note: Note | None = Field(None, description="In place of the one that it has; null or nothing takes that away.")

    @model_validator(mode="after")
    def _one_way(self) -> LabelChange:
        if "tags" in self.model_fields_set and {"add_tags", "remove_tags"} & self.model_fields_set:
            raise ValueError("`tags` says all that it has: give it, or `add_tags` and `remove_tags`")
        return self
