"""Conformal scaling: an interval is moved and stretched as past forecasts say it should have been.

Past runs say what the new forecast is expected to get wrong, mean and sd, those most that went like it so far; and the
same of each past forecast, as if it were the new one (`analogues`). Of this a share is taken (`_share`): all where it
would clearly have made past forecasts better, nothing where not. From n past runs come

    shift    the share of the new forecast's expected error
    z_j      |error_j - the share of its expected error|, in half widths of the interval of run j on that side, each
             stretched by (sd told / sd of the posterior)^share
    factor   how far 90 % of the z_j reach (`reach`), stretched likewise for the new run

and the interval reaches `factor` half widths to either side of the moved median. Where nothing is taken and there are
19 past runs or more, this is plain split-conformal prediction (Vovk, Gammerman and Shafer 2005): if the new run is
exchangeable with the past ones, it covers with probability at least 0.9 over the draw of all n + 1 runs, whatever is
wrong with the model. With 9 to 18 it covers about 0.9, at least (n - 1) / (n + 1). Where something is taken it is the
jackknife, which covers about as many of exchangeable runs but carries no such guarantee (Barber et al. 2021). Runs of
another task, size or recipe are not exchangeable; then it is history, not a guarantee.

Both sides are stretched by one factor: the interval keeps the asymmetry of the posterior, and 9 past runs are enough.
One factor a side would need 19.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .analogues import Course, expected_errors, nearest
from .arrays import FloatArray
from .reach import LEAST_SCORES, reach
from .values import Estimate, finite

BINS = (0.0, 0.175, 0.375, 0.75, 1.0)
"""Forecasts are compared with past ones of the same range of the share of what is spent in the end: about 0.1, 0.25,
0.5, later."""

MOST_RUNS = 40
"""Of more past runs those are asked that went most like the new one."""

_TO_SD = 2 * 1.6449  # width of a normal's 90 % interval in standard deviations
_LEAST_SIDE = 0.25  # of the other side: a posterior pinned at the end of the range is not certain on that side
_LEAST_HALF = 1e-9


@dataclass(frozen=True)
class Past:
    """One past forecast, and what came.

    Attributes:
        run: whose it was; a run counts once.
        fraction: the share of what the run spent in the end at which it was made.
        estimate: the posterior's own median and 90 % interval of how the run would end.
        actual: how it ended.
        course: how the run went, from its start to its end; None where that is not known.
    """

    run: str
    fraction: float
    estimate: Estimate
    actual: float
    course: Course | None = None


@dataclass(frozen=True)
class Conformal:
    """What past runs say of one forecast.

    Attributes:
        shift: by how much the outcome is to be expected above the median, in units of reward.
        factor: how many half widths the interval reaches to either side of there; 1 is as far as now.
        runs: past runs that it rests on; 0 where it is the posterior as it is.
    """

    shift: float = 0.0
    factor: float = 1.0
    runs: int = 0

    @classmethod
    def of(
        cls,
        past: Iterable[Past],
        estimate: Estimate,
        *,
        course: Course | None = None,
        fraction: float | None = None,
        width: float = 1.0,
    ) -> Conformal:
        """What past runs ask for; the posterior as it is where they are fewer than 9.

        Args:
            past: finished runs on the same metric. Each counts once, with its forecast nearest to `fraction`.
            estimate: the posterior's own forecast of the new run.
            course: how the new run went so far. Likeness counts where it is known of the new run and all past ones.
            fraction: the share of its budget that the new run has spent; only past forecasts of the same range (see
                `BINS`) are asked. All where left out.
            width: of the range of rewards.

        >>> Conformal.of([Past("a", 0.25, Estimate(0.5, 0.4, 0.6), 0.9)], Estimate(0.5, 0.4, 0.6))
        Conformal(shift=0.0, factor=1.0, runs=0)
        """
        known, paths = _asked(_one_a_run(list(past), fraction), course)
        if len(known) < LEAST_SCORES:
            return cls()
        said = [*(one.estimate for one in known), estimate]
        wrong = np.array([one.actual - one.estimate.median for one in known])
        sds = np.array([max(one.width, _LEAST_HALF) / _TO_SD for one in said])
        medians = np.array([one.median for one in said])
        errors = expected_errors(wrong / width, medians / width, sds / width, None if paths is None else paths / width)
        expected, told = errors.left_out[0] * width, np.append(errors.left_out[1], errors.new[1]) * width
        share = _share(wrong, expected)
        rest, stretch = wrong - share * expected, (told / sds) ** share
        sides = np.array([_side(one.estimate, bool(more > 0)) for one, more in zip(known, rest, strict=True)])
        factor = reach(np.abs(rest) / (sides * stretch[:-1])) * float(stretch[-1])
        return cls(share * errors.new[0] * width, factor, len(known))

    @property
    def label(self) -> str:
        """`posterior`, or `conformal (12 past runs)`."""
        return f"conformal ({self.runs} past runs)" if self.runs else "posterior"

    def apply(self, estimate: Estimate, bounds: tuple[float, float] = (0.0, 1.0)) -> Estimate:
        """The estimate moved and stretched, kept within the range of rewards.

        >>> Conformal(shift=0.125, factor=2.0, runs=9).apply(Estimate(0.5, 0.25, 0.625))
        Estimate(median=0.625, lower=0.125, upper=0.875)
        """
        if not self.runs:
            return estimate
        median = estimate.median + self.shift
        ends = median - self.factor * _side(estimate, above=False), median + self.factor * _side(estimate, above=True)
        return Estimate(*(min(max(value, bounds[0]), bounds[1]) for value in (median, *ends)))

    def to_dict(self) -> dict[str, float | int | str | None]:
        """JSON-safe."""
        return {
            "calibration": self.label,
            "shift": finite(self.shift),
            "factor": finite(self.factor),
            "runs": self.runs,
        }


def _side(estimate: Estimate, above: bool) -> float:
    """The half width of the interval on one side."""
    up, down = estimate.upper - estimate.median, estimate.median - estimate.lower
    side, other = (up, down) if above else (down, up)
    return max(side, _LEAST_SIDE * other, _LEAST_HALF)


def _share(wrong: FloatArray, expected: FloatArray) -> float:
    """How much of it is taken: all where past forecasts would clearly have been better for it, none where not.

    1 - (se / gain)^2, with gain the mean absolute error that it would have saved past forecasts.
    """
    gain = np.abs(wrong) - np.abs(wrong - expected)
    mean, error = float(gain.mean()), float(gain.std(ddof=1)) / math.sqrt(len(gain))
    return 1 - (error / mean) ** 2 if mean > error else 0.0


def _asked(known: list[Past], course: Course | None) -> tuple[list[Past], FloatArray | None]:
    """The past runs that went most like the new one, with the paths of all; the last ones where that is not known."""
    went = [one.course for one in known if one.course is not None]
    if course is None or len(went) < max(len(known), 1):
        return known[-MOST_RUNS:], None
    now = float(course.compute[-1])
    paths = np.array([one.path(now) for one in (*went, course)])
    closest = nearest(paths, MOST_RUNS)
    return [known[at] for at in closest], paths[[*closest, len(known)]]


def _one_a_run(past: Sequence[Past], fraction: float | None) -> list[Past]:
    closest: dict[str, Past] = {}
    for one in past:
        if fraction is not None and bin_of(one.fraction) != bin_of(fraction):
            continue
        known = closest.get(one.run)
        if known is None or (fraction is not None and _apart(one, fraction) < _apart(known, fraction)):
            closest[one.run] = one
    return list(closest.values())


def _apart(one: Past, fraction: float) -> float:
    return abs(one.fraction - fraction)


def bin_of(fraction: float) -> int:
    """Which range of `BINS` a share of what is spent in the end lies in; beyond the end counts as the last.

    >>> [bin_of(fraction) for fraction in (0.1, 0.25, 0.5, 0.9, 1.2)]
    [0, 1, 2, 3, 3]
    """
    return int(np.clip(np.searchsorted(BINS, fraction, side="right") - 1, 0, len(BINS) - 2))
