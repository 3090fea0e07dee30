"""Where in a run something may have changed: the ramps, steps and bends that are tried."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray
from ..posterior.problem import Problem
from .extension import Extended, NullModel

BREAK_BEFORE = 3  # evaluations before a break: fewer say nothing of what it broke with
_CHANGES = 16
_SLIDES = (2, 3, 4, 6, 9, 13)  # evaluations within which a run may lose what it loses
_SHARPEST = 5  # jumps between neighbours that are tried as sudden


@dataclass(frozen=True, eq=False)
class Changes:
    """Evaluations at which something may have changed, and the columns that say how."""

    starts: IntArray  # (T,)
    sudden: IntArray  # 1 for a step, 0 for a ramp
    columns: FloatArray  # (N, T)

    @classmethod
    def of(cls, problem: Problem) -> Changes:
        """Ramps from everywhere, steps where neighbours lie far apart, both where the run was resumed."""
        compute = problem.compute
        restarts = np.flatnonzero(np.isinf(problem.ticks[: len(compute) - 1]))  # a run may go on otherwise than before
        slow = np.unique(np.r_[1, restarts, np.linspace(3, len(compute) - 2, _CHANGES)].astype(np.int64))
        sharp = np.unique(np.r_[1, restarts, _sharpest_jumps(problem.reward)])
        return cls(
            starts=np.concatenate([slow, sharp]),
            sudden=np.repeat([0, 1], [len(slow), len(sharp)]),
            columns=np.concatenate([ramps(compute, slow), steps(len(compute), sharp)], axis=1),
        )

    def from_evaluation(self, first: int, last: int | None = None) -> Changes:
        """Those with so many evaluations before them, and no more than `last`."""
        kept = (self.starts >= first) & (last is None or self.starts <= last)
        return Changes(self.starts[kept], self.sudden[kept], self.columns[:, kept])

    def fall_of(self, null: NullModel, whole: bool = False, near: Extended | None = None) -> Extended:
        """The best of them as a fall."""
        return null.extend(self.columns, np.full(len(self.starts), -1.0), whole, near)

    def about(self, column: int, compute: FloatArray, first: int = BREAK_BEFORE) -> Changes:
        """Bends and jumps at every evaluation near that of one column, from evaluation `first` on."""
        reach = len(compute) // _CHANGES + 1
        centre = int(self.starts[column])
        near = np.arange(max(centre - reach, first), min(centre + reach, len(compute) - 2) + 1)
        return Changes(
            starts=np.concatenate([near, near]),
            sudden=np.repeat([0, 1], len(near)),
            columns=np.concatenate([ramps(compute, near), steps(len(compute), near)], axis=1),
        )

    def with_slides(self, compute: FloatArray) -> Changes:
        """These, and from each of their places ramps that end within a few evaluations, after which it stays so."""
        begun = np.unique(self.starts)
        slid = [(start, size) for size in _SLIDES for start in begun if start + size < len(compute)]
        if not slid:
            return self
        starts, sizes = np.array(slid).T
        return Changes(
            starts=np.concatenate([self.starts, starts]),
            sudden=np.concatenate([self.sudden, np.zeros_like(starts)]),
            columns=np.concatenate([self.columns, slides(compute, starts, starts + sizes - 1)], axis=1),
        )


def _sharpest_jumps(reward: FloatArray) -> IntArray:
    """Evaluations that begin a jump up or down: the mean of two lies far off the mean of the two before."""
    pairs = (reward[1:] + reward[:-1]) / 2
    jumps = pairs[2:] - pairs[:-2]  # jumps[i] compares evaluations i+2, i+3 with i, i+1
    order = np.argsort(jumps) + 2
    return np.unique([at for at in (*order[:_SHARPEST], *order[-_SHARPEST:]) if at >= 3]).astype(np.int64)


def steps(size: int, starts: IntArray) -> FloatArray:
    """Columns that are 0 before an evaluation and 1 from it on, (N, T)."""
    return np.asarray(np.arange(size)[:, None] >= starts, dtype=np.float64)


def ramps(compute: FloatArray, starts: IntArray) -> FloatArray:
    """Columns that are 0 up to the evaluation before `starts` and rise in compute to 1 at the last, (N, T)."""
    return slides(compute, starts, np.full_like(starts, len(compute) - 1))


def slides(compute: FloatArray, starts: IntArray, ends: IntArray) -> FloatArray:
    """Columns that are 0 up to the evaluation before `starts`, rise in compute to 1 at `ends` and stay, (N, T)."""
    origin = compute[starts - 1]
    return np.asarray(np.clip((compute[:, None] - origin) / (compute[ends] - origin), 0.0, 1.0))
