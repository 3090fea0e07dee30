"""Loops compiled by numba where it is installed; numpy does the same work, some ten times slower, where it is not."""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple, cast

log = logging.getLogger(__name__)

_waiting: list[Callable[[], None]] = []
_until: list[Callable[[], bool]] = []


class _Made(NamedTuple):
    """A compiled function, its name and the files in which it and what it calls are written."""

    call: Any
    name: str
    sources: frozenset[str]


def compiled(loop: Callable[..., None], twin: Callable[..., None], *parts: Callable[..., Any]) -> Callable[..., Any]:
    """The loop, compiled on its first call and kept on disk, or its numpy twin where numba is missing or nothing can be
    kept: each process would compile for half a minute.

    numba is imported here, when a fit first needs it, and not with the package. It calls only compiled functions, so
    the functions that the loop itself calls, `parts`, are compiled and put in their place; each may call those before.
    A part of several loops is compiled once.
    """
    return twin if _is_twins_turn() else _compiled(loop, twin, *parts)


def twins_until(ready: Callable[[], bool]) -> None:
    """Have numpy do the work until that holds: what another process compiles is not compiled here at the same time."""
    _until[:] = [ready]


def _is_twins_turn() -> bool:
    if _until and _until[0]():
        _until.clear()
    return bool(_until)


@cache
def _compiled(loop: Callable[..., None], twin: Callable[..., None], *parts: Callable[..., Any]) -> Callable[..., Any]:
    try:
        import numba  # noqa: F401
    except ImportError:
        return twin
    if _waiting:
        _listen()
    try:
        return cast(Callable[..., Any], _chain(loop, *parts))
    except RuntimeError:  # numba's, where it can write to none of the folders that it knows
        _say_that_none_is_kept()
        return twin


@cache
def _say_that_none_is_kept() -> None:
    log.warning(
        "fits run on numpy, several times slower: compiled loops cannot be kept, as this user may write neither beside "
        "the package nor to a cache of its own; set NUMBA_CACHE_DIR to a folder that it may write to"
    )


def _chain(loop: Callable[..., None], *parts: Callable[..., Any]) -> Any:
    """The loop, and before it its parts, ready to be compiled."""
    made: dict[str, _Made] = {}
    for function in cast(tuple[FunctionType, ...], (*parts, loop)):
        called = tuple(made[name] for name in function.__code__.co_names if name in made)
        made[function.__name__] = _made(function, called)
    return made[loop.__name__].call


def when_compiling(tell: Callable[[], None]) -> None:
    """Have that called once, when the first loop is compiled: an installation's first fit waits for it."""
    _waiting.append(tell)


@cache
def _made(function: FunctionType, called: tuple[_Made, ...]) -> _Made:
    from numba import njit

    jit = njit(cache=True, error_model="numpy", fastmath={"contract"})
    sources = frozenset({function.__code__.co_filename}).union(*(part.sources for part in called))
    bound = _bound(function, {part.name: part.call for part in called}, _stamp(sources))
    return _Made(jit(bound), function.__name__, sources)


def _bound(function: FunctionType, names: dict[str, Any], stamp: str) -> FunctionType:
    """The function with some of its global names replaced, and a stamp on the name by which it is kept on disk."""
    known = {**function.__globals__, **names}
    bound = FunctionType(function.__code__, known, function.__name__, function.__defaults__)
    bound.__module__, bound.__qualname__ = function.__module__, f"{function.__qualname__}_{stamp}"
    return bound


def _stamp(sources: frozenset[str]) -> str:
    """Changes with any of the files: numba itself looks at the loop's own file only, and its parts lie in others."""
    changed = [(path, (seen := os.stat(path)).st_mtime_ns, seen.st_size) for path in sorted(sources)]
    return f"{zlib.crc32(repr(changed).encode()):08x}"


@cache
def _listen() -> None:
    """For the first loop that is not on disk; whoever waits is told then."""
    from numba.core import event

    class _First(event.Listener):
        def on_start(self, event: object) -> None:
            while _waiting:
                _waiting.pop()()

        def on_end(self, event: object) -> None:
            pass

    event.register("numba:compile", _First())  # type: ignore[no-untyped-call]
