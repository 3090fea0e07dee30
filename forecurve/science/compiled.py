"""Loops compiled by numba where it is installed; numpy does the same work, some ten times slower, where it is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def compiled(loop: Callable[..., None], twin: Callable[..., None]) -> Callable[..., Any]:
    """The loop, compiled on its first call and kept on disk, or its numpy twin where numba is missing.

    numba is imported here, when a fit first needs it, and not with the package.
    """
    try:
        from numba import njit
    except ImportError:
        return twin
    made: Callable[..., Any] = njit(loop, cache=True, error_model="numpy", fastmath={"contract"})
    return made
