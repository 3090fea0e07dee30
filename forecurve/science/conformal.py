"""Conformal scaling: an interval is moved and stretched as past forecasts say it should have been.

The score of a past forecast says where in its interval the outcome fell: 0 at the median, 1 at the upper end of the
90 % interval, -1 at the lower end, on beyond at the same rate. From the scores s_1..s_n of past runs come

    shift   the median score, shrunk to 0 unless it stands out: m (1 - (2 se / m)^2)+, se by the median deviation
    factor  the ceil(0.9 (n + 1))-th smallest |s_j - shift without j|

and the interval becomes what lies between the scores shift - factor and shift + factor. Without a shift this is
split-conformal prediction (Vovk, Gammerman and Shafer 2005; Lei et al. 2018): if the new run is exchangeable with the
past ones, it covers with probability at least 0.9 over the draw of all n + 1 runs, whatever is wrong with the model.
With a shift it is the jackknife, which covers about 0.9 of exchangeable runs but carries no such guarantee (Barber et
al. 2021). Runs of another task, size or recipe are not exchangeable; then it is history, not a guarantee.

Both sides are stretched by one factor: the interval keeps the asymmetry of the posterior, and 9 past runs are enough.
One factor a side would need 19.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .arrays import FloatArray
from .values import Estimate, finite

LEVEL = 0.9
LEAST_RUNS = 9
"""With fewer, no score is large enough to cover 90 %."""
BINS = (0.0, 0.175, 0.375, 0.75, 1.0)
"""Forecasts are compared with past ones in the same range of the share of the budget: about 0.1, 0.25, 0.5, later."""

_LEAST_HALF = 1e-9
_STANDS_OUT = 2.0  # standard errors
_TO_SD = 1.4826  # of a normal, from its median absolute deviation
_OF_MEDIAN = 1.2533  # standard error of a normal's median over that of its mean


@dataclass(frozen=True)
class Score:
    """How one past forecast turned out.

    Attributes:
        run: whose it was; a run counts once.
        fraction: the share of its budget at which it was made.
        value: where in its interval the outcome fell, in [-1, 1] where the interval covered.
    """

    run: str
    fraction: float
    value: float

    @classmethod
    def of(cls, run: str, fraction: float, estimate: Estimate, actual: float) -> Score:
        """The score of `estimate` against what came."""
        return cls(run, fraction, score_of(estimate, actual))


def score_of(estimate: Estimate, actual: float) -> float:
    """(actual - median) over the half width of the interval on that side.

    >>> score_of(Estimate(0.5, 0.4, 0.7), 0.6), score_of(Estimate(0.5, 0.25, 0.7), 0.125)
    (0.5, -1.5)
    """
    error = actual - estimate.median
    half = estimate.upper - estimate.median if error > 0 else estimate.median - estimate.lower
    return error / max(half, _LEAST_HALF)


@dataclass(frozen=True)
class Conformal:
    """What past runs say of a 90 % interval, in scores.

    Attributes:
        shift: where the outcome is to be expected; 0 is the median.
        factor: how far the interval reaches on either side of it; 1 is as far as now.
        runs: past runs that it rests on; 0 where it is the posterior as it is.
    """

    shift: float = 0.0
    factor: float = 1.0
    runs: int = 0

    @classmethod
    def of(cls, scores: Iterable[Score], *, fraction: float | None = None) -> Conformal:
        """What past scores ask for; the posterior as it is where they are fewer than 9.

        Args:
            scores: of finished runs on the same metric. Each run counts once, with its score nearest to `fraction`.
            fraction: only scores in the same range of the share of the budget (see `BINS`); all where left out.

        >>> Conformal.of([Score(str(run), 0.25, (-1) ** run * 0.1 * run) for run in range(1, 10)])
        Conformal(shift=0.0, factor=0.9, runs=9)
        >>> Conformal.of([Score("a", 0.25, 2.0)])
        Conformal(shift=0.0, factor=1.0, runs=0)
        """
        values = np.array(_one_a_run(list(scores), fraction))
        if len(values) < LEAST_RUNS:
            return cls()
        every = np.tile(values, (len(values), 1))
        without = every[~np.eye(len(values), dtype=bool)].reshape(len(values), -1)
        apart = np.sort(np.abs(values - _shift(without)))
        rank = math.ceil(LEVEL * (len(values) + 1) - 1e-9)
        return cls(float(_shift(values[None])[0]), float(apart[rank - 1]), len(values))

    @property
    def label(self) -> str:
        """`posterior`, or `conformal (12 past runs)`."""
        return f"conformal ({self.runs} past runs)" if self.runs else "posterior"

    def apply(self, estimate: Estimate, bounds: tuple[float, float] = (0.0, 1.0)) -> Estimate:
        """The estimate moved and stretched, kept within the range of rewards.

        >>> Conformal(shift=0.0, factor=2.0, runs=9).apply(Estimate(0.5, 0.25, 0.625))
        Estimate(median=0.5, lower=0.0, upper=0.75)
        """

        def at(score: float) -> float:
            half = estimate.upper - estimate.median if score > 0 else estimate.median - estimate.lower
            return min(max(estimate.median + score * half, bounds[0]), bounds[1])

        return Estimate(at(self.shift), at(self.shift - self.factor), at(self.shift + self.factor))

    def to_dict(self) -> dict[str, float | int | str | None]:
        """JSON-safe."""
        return {
            "calibration": self.label,
            "shift": finite(self.shift),
            "factor": finite(self.factor),
            "runs": self.runs,
        }


def _shift(values: FloatArray) -> FloatArray:
    """The shrunk median of each row: (K, n) -> (K,)."""
    median = np.median(values, axis=1)
    spread = _TO_SD * np.median(np.abs(values - median[:, None]), axis=1)
    error = _STANDS_OUT * _OF_MEDIAN * spread / np.sqrt(values.shape[1])
    stands_out = np.abs(median) > error
    back = np.divide(error**2, median, out=np.zeros_like(median), where=stands_out)
    return np.where(stands_out, median - back, 0.0)


def _one_a_run(scores: Sequence[Score], fraction: float | None) -> list[float]:
    nearest: dict[str, Score] = {}
    for score in scores:
        if fraction is not None and bin_of(score.fraction) != bin_of(fraction):
            continue
        known = nearest.get(score.run)
        if known is None or (fraction is not None and _apart(score, fraction) < _apart(known, fraction)):
            nearest[score.run] = score
    return [score.value for score in nearest.values()]


def _apart(score: Score, fraction: float) -> float:
    return abs(score.fraction - fraction)


def bin_of(fraction: float) -> int:
    """Which range of `BINS` a share of the budget lies in; beyond the budget counts as the last.

    >>> [bin_of(fraction) for fraction in (0.1, 0.25, 0.5, 0.9, 1.2)]
    [0, 1, 2, 3, 3]
    """
    return int(np.clip(np.searchsorted(BINS, fraction, side="right") - 1, 0, len(BINS) - 2))
