"""Commands that ask the service: the flags that name it, one connection, and JSON or words on stdout."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from ..given.flags import DATA_DIR, AsJson, DataDir, Token, Url
from .naming import Named, find_id

if TYPE_CHECKING:
    from forecurve.client.api import Api


@dataclass(frozen=True)
class Answer:
    """What a command found: `data` (or what gets it) for --json, and for people a text or what prints one."""

    data: Any
    words: str | Callable[[], object]


class Service:
    """The service that the flags name; nobody looks for it before `api` is used, so that bad input is said first."""

    def __init__(self, url: str | None, token: str | None, data_dir: Path):
        self._named = url, token, data_dir
        self._open = ExitStack()

    @functools.cached_property
    def api(self) -> Api:
        """The client; CliError says how to name a service when none is known."""
        from .connection import connect

        return self._open.enter_context(connect(*self._named))

    def close(self) -> None:
        self._open.close()


def asks_service(command: Callable[..., Answer]) -> Callable[..., None]:
    """Make a command of a function whose first parameter is the service to ask.

    The command has the function's other parameters as its own, and --url, --token, --data-dir and --json behind them.
    Those that are marked `Named` take names for ids.
    """

    @functools.wraps(command)
    def asking(*, url: str | None, token: str | None, data_dir: Path, as_json: bool, **own: Any) -> None:
        with closing(Service(url, token, data_dir)) as service:
            own |= {name: _ids(service, named, own[name]) for name, named in by_name.items()}
            print_answer(command(service, **own), as_json)  # what is long is asked for while it is printed

    parameters = [*_own_parameters(command), *_FLAGS]
    by_name = {parameter.name: named for parameter in parameters if (named := _named(parameter.annotation))}
    asking.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    asking.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return asking


def print_answer(answer: Answer, as_json: bool) -> None:
    """What a command found: as JSON, or in words."""
    from ..showing.output import print_json

    if as_json:
        print_json(answer.data() if callable(answer.data) else answer.data)
    elif isinstance(answer.words, str):
        print(answer.words)
    else:
        answer.words()


def _own_parameters(command: Callable[..., Answer]) -> list[inspect.Parameter]:
    """All but the service, with their annotations evaluated."""
    hints = get_type_hints(command, include_extras=True)
    _, *own = inspect.signature(command).parameters.values()
    return [_keyword(each.name, hints[each.name], each.default) for each in own]


def _named(annotation: Any) -> Named | None:
    return next((each for each in get_args(annotation)[1:] if isinstance(each, Named)), None)


def _ids(service: Service, named: Named, given: Any) -> Any:
    """The ids that are meant: of one thing, of several, or of none."""
    if isinstance(given, list):
        return [find_id(service.api, named, one) for one in given]
    return given and find_id(service.api, named, given)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


_FLAGS = [
    _keyword("url", Url, None),
    _keyword("token", Token, None),
    _keyword("data_dir", DataDir, DATA_DIR),
    _keyword("as_json", AsJson, False),
]
