"""Ids by name: whoever gave a run, a sweep, a channel or a token its name may call it so wherever an id is taken.

What looks like an id is one. A name is looked up; several things of one name are told apart by their ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import BAD_INPUT, CliError

if TYPE_CHECKING:
    from forecurve.client.api import Api

SHOWN = 5
"""Ids at most that an error lists."""
_LOOKED_AT = 200
"""The newest runs, in whose names a project's is looked for."""


@dataclass(frozen=True)
class Named:
    """Marks a parameter that takes the id of a thing, or its name.

    Attributes:
        kind: run, sweep, channel or token.
        archived: things that were put away come first, for a command that is about them.
    """

    kind: str
    archived: bool = False


def find_id(api: Api, named: Named, given: str) -> str:
    """The id that is meant. What is neither an id nor a name goes through: the service says that there is none.

    Raises:
        CliError: several things are called so, or a run only with its project before the name.
    """
    prefix, called_so = _KINDS[named.kind]
    if re.fullmatch(rf"{prefix}_[0-9a-z]{{20,}}", given):
        return given
    _check_no_secret(given)
    for found in called_so(api, given, named.archived):
        ids = [str(one["id"]) for one in islice(found, SHOWN + 1)]
        if len(ids) > 1:
            raise _several(named.kind, given, ids)
        if ids:
            return ids[0]
    if named.kind == "run" and (whole := _in_projects(api, given)):
        raise _fault("run", given, f"no run is called {given!r}; did you mean {' or '.join(map(repr, whole))}?")
    if not re.fullmatch(r"[\w-]+", given, re.ASCII):  # no path can have it
        raise _none(named.kind, given)
    return given


Lookup = Callable[["Api", str, bool], Iterable[Iterator[dict[str, Any]]]]


def _runs(api: Api, name: str, archived: bool) -> Iterator[Iterator[dict[str, Any]]]:
    """Those that lists show, and only where none of them is called so those that were put away; or the other way."""
    for put_away in (archived, not archived):
        yield api.runs(name=name, archived=put_away or None, limit=SHOWN + 1)


def _sweeps(api: Api, name: str, archived: bool) -> Iterator[Iterator[dict[str, Any]]]:
    """As runs."""
    for put_away in (archived, not archived):
        yield api.sweeps(name=name, archived=put_away or None, limit=SHOWN + 1)


def _channels(api: Api, name: str, _: bool) -> Iterator[Iterator[dict[str, Any]]]:
    yield (channel for channel in api.channels() if channel["name"] == name)


def _tokens(api: Api, name: str, _: bool) -> Iterator[Iterator[dict[str, Any]]]:
    living = (token for token in api.tokens(kind="api") if not token["revoked_at"])
    yield (token for token in living if token["name"] == name)


_KINDS: dict[str, tuple[str, Lookup]] = {
    "run": ("run", _runs),
    "sweep": ("swp", _sweeps),
    "channel": ("chn", _channels),
    "token": ("tok", _tokens),
}


def _in_projects(api: Api, name: str) -> list[str]:
    """Names of runs that `init` was given `name` and a project for."""
    newest = islice(api.runs(limit=_LOOKED_AT), _LOOKED_AT)
    found = dict.fromkeys(str(run["name"]) for run in newest if str(run["name"]).endswith(f"/{name}"))
    return list(found)[:SHOWN]


def _check_no_secret(given: str) -> None:
    """A secret is no name: it is neither sent as one nor shown again."""
    if given.startswith("fc_"):
        text = "this is the secret of a token; give the token's id, which `forecurve token list` shows"
        raise CliError(text, exit_code=BAD_INPUT)


def _several(kind: str, name: str, ids: list[str]) -> CliError:
    how_many = str(len(ids)) if len(ids) <= SHOWN else f"more than {SHOWN}"
    called = f"{how_many} {kind}s are called {name!r}, newest first {', '.join(ids[:SHOWN])}"
    return _fault(kind, name, f"{called}; give an id, `forecurve {kind} list` shows them")


def _none(kind: str, name: str) -> CliError:
    return _fault(kind, name, f"no {kind} is called {name!r}; `forecurve {kind} list` shows them")


def _fault(kind: str, name: str, message: str) -> CliError:
    fault = {"field": f"{kind}_id", "value": name, "message": message}
    return CliError(f"{kind}_id: {message}", exit_code=BAD_INPUT, body={"errors": [fault]})
