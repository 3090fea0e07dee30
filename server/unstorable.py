"""What of a request Postgres cannot store: text with a NUL, NaN in JSON. Looked for when it has refused."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from fastapi import Request

MOST_SHOWN = 20

Fault = dict[str, Any]


async def unstorable(request: Request) -> list[Fault]:
    """The faults, by field; none when the request is not to blame."""
    asked = [*request.path_params.items(), *request.query_params.multi_items()]  # one name may be asked several times
    found = [fault for name, value in asked for fault in _faults((name,), value)]
    return [*found, *_faults((), _json(await request.body()))][:MOST_SHOWN]


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _faults(path: tuple[str, ...], value: Any) -> Iterator[Fault]:
    left = [(path, value)]  # not by recursion: what is nested deeply must not fail here
    while left:
        path, value = left.pop()
        if message := _message(value):
            yield {"field": ".".join(path).encode(errors="replace").decode(), "value": value, "message": message}
        elif isinstance(value, list):
            left += [((*path, str(index)), item) for index, item in enumerate(value)]
        elif isinstance(value, dict):
            left += [((*path, name), name) for name in value]
            left += [((*path, name), item) for name, item in value.items()]


def _message(value: Any) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return "is no finite number; send one, or null"
    if not isinstance(value, str):
        return None
    if "\x00" in value:
        return "has a NUL character, which cannot be stored; leave it out"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "has half a surrogate pair, which is no text; send UTF-8"
    return None
