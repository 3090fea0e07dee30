"""Loops compiled by numba where it is installed; numpy does the same work, some ten times slower, where it is not."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, cast


@cache
def compiled(loop: Callable[..., None], twin: Callable[..., None], *parts: Callable[..., Any]) -> Callable[..., Any]:
    """The loop, compiled on its first call and kept on disk, or its numpy twin where numba is missing.

    numba is imported here, when a fit first needs it, and not with the package. It calls only compiled functions, so
    the functions that the loop itself calls, `parts`, are compiled and put in their place; each may call those before.
    """
    try:
        from numba import njit
    except ImportError:
        return twin
    jit = njit(cache=True, error_model="numpy", fastmath={"contract"})
    made: dict[str, Callable[..., Any]] = {}
    sources: set[str] = set()
    for function in cast(tuple[FunctionType, ...], (*parts, loop)):
        sources.add(function.__code__.co_filename)
        made[function.__name__] = jit(_bound(function, made, _stamp(sources)))
    return made[loop.__name__]


def _bound(function: FunctionType, names: dict[str, Callable[..., Any]], stamp: str) -> FunctionType:
    """The function with some of its global names replaced, and a stamp on the name by which it is kept on disk."""
    known = {**function.__globals__, **names}
    bound = FunctionType(function.__code__, known, function.__name__, function.__defaults__)
    bound.__module__, bound.__qualname__ = function.__module__, f"{function.__qualname__}_{stamp}"
    return bound


def _stamp(sources: set[str]) -> str:
    """Changes with any of the files: numba itself looks at the loop's own file only, and its parts lie in others."""
    changed = [(path, (seen := os.stat(path)).st_mtime_ns, seen.st_size) for path in sorted(sources)]
    return f"{zlib.crc32(repr(changed).encode()):08x}"
