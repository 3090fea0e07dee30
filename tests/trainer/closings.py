"""Thinking that is over when a row has written certain tokens: `Interruption.closed` where there is no text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def closes_with(*word: int) -> Callable[[NDArray[np.int64]], NDArray[np.bool_]]:
    """Rows that hold these tokens without a gap."""

    def closed(tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
        starts = range(tokens.shape[1] - len(word) + 1)
        found = [(tokens[:, start : start + len(word)] == word).all(axis=1) for start in starts]
        return np.any([np.zeros(len(tokens), dtype=np.bool_), *found], axis=0)

    return closed
