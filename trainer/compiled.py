"""Loops for what torch has no single operation for on a CPU, compiled by numba where it is installed.

Each does in one pass over memory what takes torch five to ten. They run on the calling thread, so they serve workers
of one thread; everybody else takes torch's operations, which give the same numbers but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor


def serve(x: Tensor) -> bool:
    """Whether compiled loops can take this tensor here: float32 on a CPU, one torch thread, numba installed."""
    fits = x.device.type == "cpu" and x.dtype == torch.float32
    return fits and torch.get_num_threads() == 1 and _numba() is not None


@cache
def compiled(loop: Callable[..., None]) -> Callable[..., None]:
    """The loop, compiled on its first call and kept on disk where it can be. It takes numpy arrays, and numpy or Python
    numbers."""
    numba = _numba()
    assert numba is not None, "asked for a compiled loop without having asked whether there are any"
    # Sums may be reordered, or they would run one number at a time. NaN and infinity keep their meaning.
    options = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
    made: Callable[..., None]
    try:
        made = numba.njit(cache=True, **options)(loop)
    except RuntimeError:  # it can write to none of the folders that it knows: compiled anew by each job
        made = numba.njit(**options)(loop)
    return made


def plain(x: Tensor, *shape: int) -> Any:
    """The tensor's own memory as a numpy array, in this shape if one is given; the tensor must be contiguous."""
    array = x.detach().numpy()
    return array.reshape(shape) if shape else array


@cache
def _numba() -> Any:
    try:
        import numba
    except ImportError:
        return None
    return numba
