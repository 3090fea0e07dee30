"""Mixtures of very small numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..arrays import FloatArray

_UP = 2.0**500
_LEAST = 1e-300


def log_mixed(shares: FloatArray, kernels: Iterable[FloatArray]) -> Iterator[FloatArray]:
    """ln(shares @ kernel + 1e-300) of each kernel, in turn; both hold numbers from 0 to about 1.

    Products of two such are often below 1e-308, where a processor is ten times as slow. So both are taken 2^500 times
    as large: a power of two changes no digit of what is not that small.
    """
    raised = shares * _UP
    for kernel in kernels:
        mixed = raised @ (kernel * _UP)
        mixed += _LEAST * _UP**2
        mixed *= _UP**-2
        yield np.log(mixed, out=mixed)
