"""Evaluations as they are judged: the first 400 one by one, later ones as means of ever more neighbours.

Which belong together is settled by their numbers alone: what was judged is not judged anew when others come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray, IntArray
from .frozen import FrozenForecast

_ONE_BY_ONE = 400
_OF_A_SIZE = 100  # means of 2, then as many of 4, and so on: 10,000 evaluations are about 960 rows
_DOUBLINGS = 40  # more evaluations than these make are as good as never


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows: evaluations, or means of neighbours, and the last evaluation where its mean is not complete yet.

    Attributes:
        compute, reward, variance: of each row, (H,); variance is the nominal one.
        clock: evaluation clock since the freeze, (H,).
        since: compute of the first evaluation of each row, (H,).
        complete: of how many rows the evidence is read off; a last one of a mean to come is only shown.
        horizon: rows that were expected at the freeze.
    """

    compute: FloatArray
    reward: FloatArray
    variance: FloatArray
    clock: FloatArray
    since: FloatArray
    complete: int
    horizon: int

    @property
    def size(self) -> int:
        """H."""
        return len(self.compute)

    def complete_ones(self) -> Judged:
        """Without a last one of a mean to come."""
        columns = ("compute", "reward", "variance", "clock", "since")
        return replace(self, **{name: getattr(self, name)[: self.complete] for name in columns})

    @classmethod
    def of(
        cls,
        frozen: FrozenForecast,
        compute: FloatArray,
        reward: FloatArray,
        variance: FloatArray,
        restarts: tuple[float, ...],
    ) -> Judged:
        """Of all evaluations after the freeze, (N,) each."""
        edges = _edges(len(compute))
        starts, complete = edges[:-1], len(edges) - 1
        if edges[-1] < len(compute):
            starts, edges = np.append(starts, len(compute) - 1), np.append(edges, len(compute))
        sizes = edges[1:] - starts

        def means(values: FloatArray) -> FloatArray:
            total = np.concatenate([[0.0], np.cumsum(values)])
            return np.where(sizes == 1, values[starts], (total[edges[1:]] - total[starts]) / sizes)

        return cls(
            compute=means(compute),
            reward=means(reward),
            variance=means(variance) / sizes,
            clock=means(frozen.clock(compute, restarts)),
            since=compute[starts],
            complete=complete,
            horizon=len(_edges(frozen.horizon)) - 1,
        )


def _edges(size: int) -> IntArray:
    """Where each complete row begins, and where the last one ends."""
    doublings = min(size.bit_length(), _DOUBLINGS)
    sizes = np.concatenate(
        [np.ones(_ONE_BY_ONE, dtype=np.int64), np.repeat(2 ** np.arange(1, doublings + 1), _OF_A_SIZE)]
    )
    edges = np.concatenate([[0], np.cumsum(sizes)])
    return np.asarray(edges[edges <= size])
