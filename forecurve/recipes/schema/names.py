"""Names for people: what is left of one without the space around it must be there to be seen."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from forecurve.signs import is_obeyed, is_seen


def _visible(name: str) -> str:
    obeyed = next((sign for sign in name if is_obeyed(sign)), None)
    if obeyed is not None:  # it would reach terminals and logs
        raise ValueError(f"has {obeyed!a}, which is a command to a terminal and no sign; write it without")
    if not is_seen(name):
        raise ValueError("has nothing that can be seen; give a letter or a digit at least")
    return name


Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=200),
    AfterValidator(_visible),
    Field(json_schema_extra={"minLength": 1, "pattern": r"\S"}),
]
"""At most 200 characters, stripped, not blank, on one line and without escapes."""
