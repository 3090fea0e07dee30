"""Split-conformal scaling: the interval is made as much wider or narrower as past forecasts say it should have been.

The score of a past forecast is its error over the half width of its 90 % interval on the side of the error, so that a
score of 1 is an outcome right on the interval's end. With n past runs the factor is the ceil(0.9 (n + 1))-th smallest
score. If the new run is exchangeable with the past ones, the scaled interval covers with probability at least 0.9 over
the draw of all n + 1 runs (Vovk, Gammerman and Shafer 2005; Lei et al. 2018), whatever is wrong with the model. Runs
of another task, size or recipe are not exchangeable; then the factor is history, not a guarantee.

Both sides are scaled by one factor: the interval keeps the asymmetry of the posterior, and 9 past runs are enough.
One factor a side would need 19.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .values import Estimate, finite

LEVEL = 0.9
LEAST_RUNS = 9
"""With fewer, no score is large enough to cover 90 %."""
BINS = (0.0, 0.175, 0.375, 0.75, 1.0)
"""Forecasts are compared with past ones in the same range of the share of the budget: about 0.1, 0.25, 0.5, later."""

_LEAST_HALF = 1e-9


@dataclass(frozen=True)
class Score:
    """How one past forecast turned out.

    Attributes:
        run: whose it was; a run counts once in a factor.
        fraction: the share of its budget at which it was made.
        ratio: |error| over the half width on that side; at most 1 where the interval covered.
    """

    run: str
    fraction: float
    ratio: float

    @classmethod
    def of(cls, run: str, fraction: float, estimate: Estimate, actual: float) -> Score:
        """The score of `estimate` against what came."""
        return cls(run, fraction, ratio(estimate, actual))


def ratio(estimate: Estimate, actual: float) -> float:
    """|error| over the half width of the interval on the side of the error.

    >>> ratio(Estimate(0.5, 0.4, 0.7), 0.6)
    0.5
    """
    error = actual - estimate.median
    half = estimate.upper - estimate.median if error > 0 else estimate.median - estimate.lower
    return abs(error) / max(half, _LEAST_HALF)


@dataclass(frozen=True)
class Conformal:
    """A factor for the half widths of a 90 % interval.

    Attributes:
        factor: 1 where there are too few past runs.
        runs: past runs that it rests on; 0 where it is the posterior as it is.
    """

    factor: float = 1.0
    runs: int = 0

    @classmethod
    def of(cls, scores: Iterable[Score], *, fraction: float | None = None) -> Conformal:
        """The factor that past scores ask for.

        Args:
            scores: of finished runs on the same metric. Each run counts once, with its score nearest to `fraction`.
            fraction: only scores in the same range of the share of the budget (see `BINS`); all where left out.

        >>> Conformal.of([Score(str(run), 0.25, 0.1 * run) for run in range(1, 10)])
        Conformal(factor=0.9, runs=9)
        >>> Conformal.of([Score("a", 0.25, 2.0)])
        Conformal(factor=1.0, runs=0)
        """
        ratios = _one_a_run(list(scores), fraction)
        if len(ratios) < LEAST_RUNS:
            return cls()
        rank = math.ceil(LEVEL * (len(ratios) + 1) - 1e-9)
        return cls(float(np.sort(ratios)[rank - 1]), len(ratios))

    @property
    def label(self) -> str:
        """`posterior`, or `conformal (12 past runs)`."""
        return f"conformal ({self.runs} past runs)" if self.runs else "posterior"

    def apply(self, estimate: Estimate, bounds: tuple[float, float] = (0.0, 1.0)) -> Estimate:
        """The estimate with scaled half widths, kept within the range of rewards."""
        lower = estimate.median - self.factor * (estimate.median - estimate.lower)
        upper = estimate.median + self.factor * (estimate.upper - estimate.median)
        return Estimate(estimate.median, max(lower, bounds[0]), min(upper, bounds[1]))

    def to_dict(self) -> dict[str, float | int | str | None]:
        """JSON-safe."""
        return {"calibration": self.label, "factor": finite(self.factor), "runs": self.runs}


def _one_a_run(scores: Sequence[Score], fraction: float | None) -> list[float]:
    if fraction is None:
        return list({score.run: score.ratio for score in scores}.values())
    nearest: dict[str, Score] = {}
    for score in scores:
        if bin_of(score.fraction) != bin_of(fraction):
            continue
        known = nearest.get(score.run)
        if known is None or abs(score.fraction - fraction) < abs(known.fraction - fraction):
            nearest[score.run] = score
    return [score.ratio for score in nearest.values()]


def bin_of(fraction: float) -> int:
    """Which range of `BINS` a share of the budget lies in; beyond the budget counts as the last.

    >>> [bin_of(fraction) for fraction in (0.1, 0.25, 0.5, 0.9, 1.2)]
    [0, 1, 2, 3, 3]
    """
    return int(np.clip(np.searchsorted(BINS, fraction, side="right") - 1, 0, len(BINS) - 2))
