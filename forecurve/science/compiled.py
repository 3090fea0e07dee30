"""Loops compiled by numba where it is installed; numpy does the same work, several times slower, where it is not.

kept on disk                            compiled, within a second or two
not yet, and PATIENCE_S not used up     numpy: who fits a curve or two waits for no compiler
not yet, and used up                    compiled, and kept
nothing can be kept, or no numba        numpy, and so where numba is told not to compile
"""

from __future__ import annotations

import logging
import os
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, cast

log = logging.getLogger(__name__)

PATIENCE_S = 30.0
"""How long numpy works for loops that are not on disk: about as long as it takes to compile them, so that whoever
compiles in the end has waited for twice of that at most."""

Loop = Callable[..., None]


@dataclass
class _Turn:
    """Whose turn it is in this process: `numpy_s` it has worked for already, and `ready` ends its turn, if any."""

    numpy_s: float = 0.0
    patience_s: float = PATIENCE_S
    ready: Callable[[], bool] | None = None

    def is_of_another(self) -> bool:
        """Whether another process compiles."""
        if self.ready is not None and self.ready():
            self.ready = None
        return self.ready is not None

    def is_over(self) -> bool:
        return self.numpy_s >= self.patience_s


_turn = _Turn()
_waiting: list[Callable[[], None]] = []


def compiled(loop: Loop, twin: Loop, *parts: Callable[..., Any]) -> Loop:
    """The loop, compiled, or its numpy twin; which one, the module says.

    numba is imported here, when a fit first needs it, and not with the package. It calls only compiled functions, so
    the functions that the loop itself calls, `parts`, are compiled and put in their place; each may call those before.
    A part of several loops is compiled once.
    """
    if _turn.is_of_another():
        return twin
    made = _compiled(loop, *parts)
    if made is None:
        return twin
    return made.call if made.is_kept or _turn.is_over() else _timed(twin)


def twins_until(ready: Callable[[], bool]) -> None:
    """Have numpy do the work until that holds: what another process compiles is not compiled here at the same time."""
    _turn.ready = ready


def compile_at_once() -> None:
    """Have loops that are not on disk compiled when they are first called, whatever it takes."""
    _turn.patience_s = 0.0


def seconds_of_numpy() -> float:
    """How long numpy has worked in this process for loops that compiling would have kept."""
    return _turn.numpy_s


def when_compiling(tell: Callable[[], None]) -> None:
    """Have that called once, when the first loop is compiled."""
    _waiting.append(tell)


@cache
def _timed(twin: Loop) -> Loop:
    def run(*given: Any) -> None:
        began = time.perf_counter()
        twin(*given)
        _turn.numpy_s += time.perf_counter() - began

    return run


@dataclass(frozen=True)
class _Made:
    """A function for numba, its name, and the files in which it and what it calls are written."""

    call: Any
    name: str
    sources: frozenset[str]

    @cached_property
    def is_kept(self) -> bool:
        """Whether it lies compiled on disk when it is first asked for; what it calls is in it."""
        kept = Path(self.call.stats.cache_path).glob(f"*.{self.call.py_func.__qualname__}-*.nbi")
        return next(kept, None) is not None


@cache
def _compiled(loop: Loop, *parts: Callable[..., Any]) -> _Made | None:
    """What numba makes of it; None where it is missing, compiles nothing (NUMBA_DISABLE_JIT), or can write to none of
    the folders that it knows."""
    try:
        from numba import config
    except ImportError:
        return None
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # numba's own way of having settings
        return None
    if _waiting:
        _listen()
    try:
        return _chain(loop, *parts)
    except RuntimeError:
        _say_that_none_is_kept()
        return None


@cache
def _say_that_none_is_kept() -> None:
    log.warning(
        "fits run on numpy, several times slower: compiled loops cannot be kept, as this user may write neither beside "
        "the package nor to a cache of its own; set NUMBA_CACHE_DIR to a folder that it may write to"
    )


def _chain(loop: Loop, *parts: Callable[..., Any]) -> _Made:
    """The loop, and before it its parts, ready to be compiled when they are called."""
    made: dict[str, _Made] = {}
    for function in cast(tuple[FunctionType, ...], (*parts, loop)):
        called = tuple(made[name] for name in function.__code__.co_names if name in made)
        made[function.__name__] = _made(function, called)
    return made[loop.__name__]


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
    bound.__module__, bound.__qualname__ = function.__module__, f"{function.__name__}_{stamp}"
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
