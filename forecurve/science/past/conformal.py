"""Conformal scaling: an interval is moved and stretched as past forecasts say it should have been.

Past runs say what the new forecast is expected to get wrong, mean and sd, those most that went like it so far; and the
same of each past forecast, as if it were the new one (`hindsight`). Of this a share is taken (`gains`): all where it
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

With 3 to 8 past runs nothing is guaranteed, and the interval is called adjusted, not conformal: what a heavy-tailed law
of the scores tells that beforehand is half on intervals that are right as they are.

Both sides are stretched by one factor: the interval keeps the asymmetry of the posterior otherwise, and 9 past runs are
enough. One factor a side would need 19.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..checks import check_kind
from ..errors import PriorError
from ..values import Estimate, finite
from .hindsight import Hindsight, told_by
from .reach import RANKS_FROM, reach

WITHOUT = "without past runs"
_LEAST_SIDE = 0.25  # of the other side: a posterior pinned at the end of the range is not certain on that side
_LEAST_HALF = 1e-9  # of the range


@dataclass(frozen=True)
class Conformal:
    """What past runs say of one forecast.

    Attributes:
        shift: by how much the outcome is to be expected above the median, in units of reward.
        factor: how many half widths the interval reaches to either side of there; 1 is as far as now.
        runs: past runs that it rests on; 0 where it is the posterior as it is.
        even: how far the narrower side counts as wide as the wider, 0 to 1.
        seeds: other seeds of its arm to whose ends it is drawn.
        lean: by how much more the outcome is to be expected, as seeds of its arm tell that are far ahead; the interval
            reaches as much further on that side.
        ahead: how many these are.
    """

    shift: float = 0.0
    factor: float = 1.0
    runs: int = 0
    even: float = 0.0
    seeds: int = 0
    lean: float = 0.0
    ahead: int = 0

    @classmethod
    def of(cls, hindsight: Hindsight) -> Conformal:
        """What past runs ask for; the posterior as it is where they are fewer than 3.

        >>> from .hindsight import Past
        >>> unit = Estimate(0.5, 0.4, 0.6)
        >>> Conformal.of(Hindsight.of([Past("a", 0.25, unit, 0.9)], unit))
        Conformal(shift=0.0, factor=1.0, runs=0, even=0.0, seeds=0, lean=0.0, ahead=0)
        """
        check_kind("hindsight", hindsight, Hindsight, "pass Hindsight.of(past, estimate)", PriorError)
        if hindsight.errors is None:
            return cls()
        (moved, wider), drawn = hindsight.taken, hindsight.drawn
        shift, stretch = moved + drawn.move, wider * drawn.narrower
        rest = hindsight.wrong - shift[:-1]
        estimates = [one.estimate for one in hindsight.known]
        asked = zip(estimates, rest > 0, drawn.share[:-1], strict=True)
        sides = np.array([_side(*one, hindsight.scale) for one in asked])
        factor = reach(np.abs(rest) / (sides * stretch[:-1])) * float(stretch[-1])
        even, lean = float(drawn.share[-1]), hindsight.lean
        seeds = len(hindsight.mates) if even else 0
        return cls(float(shift[-1]), factor, hindsight.runs, even, seeds, lean, hindsight.seeds_ahead)

    @property
    def label(self) -> str:
        """`posterior`, `adjusted (5 past runs)`, or, with 9 and more, `conformal (12 past runs)`."""
        if not self.runs:
            return "posterior"
        return f"{'conformal' if self.runs >= RANKS_FROM else 'adjusted'} ({self.runs} past runs)"

    @property
    def words(self) -> str:
        """What it rests on, for people: see `rests_on`."""
        return rests_on(self.runs, self.seeds, self.ahead)

    def apply(self, estimate: Estimate, bounds: tuple[float, float] = (0.0, 1.0)) -> Estimate:
        """The estimate moved and stretched, kept within the range of rewards.

        >>> Conformal(shift=0.125, factor=2.0, runs=9).apply(Estimate(0.5, 0.25, 0.625))
        Estimate(median=0.625, lower=0.125, upper=0.875)
        >>> Conformal(shift=-0.125, factor=1.0, runs=9, even=1.0).apply(Estimate(0.5, 0.25, 0.625))
        Estimate(median=0.375, lower=0.125, upper=0.625)
        >>> Conformal(runs=9, lean=0.25, ahead=2).apply(Estimate(0.5, 0.25, 0.625))
        Estimate(median=0.75, lower=0.25, upper=0.875)
        """
        if not self.runs:
            return estimate
        median = estimate.median + self.shift
        width = bounds[1] - bounds[0]
        below, above = (self.factor * _side(estimate, up, self.even, width) for up in (False, True))
        ends = median - below + min(self.lean, 0.0), median + above + max(self.lean, 0.0)
        return Estimate(*(min(max(value, bounds[0]), bounds[1]) for value in (median + self.lean, *ends)))

    def to_dict(self) -> dict[str, float | int | str | None]:
        """JSON-safe."""
        return {
            "calibration": self.label,
            "shift": finite(self.shift),
            "factor": finite(self.factor),
            "runs": self.runs,
            "even": finite(self.even),
            "seeds": self.seeds,
            "lean": finite(self.lean),
            "ahead": self.ahead,
        }


def rests_on(runs: int, seeds: int = 0, ahead: int = 0) -> str:
    """What an interval rests on that past runs have a say in; `ahead`: seeds of its arm that are still on their way.

    >>> rests_on(12, 2), rests_on(5)
    ('calibrated on 12 past runs, 2 of its arm', 'adjusted by 5 past runs')
    >>> rests_on(12, ahead=2)
    'calibrated on 12 past runs and 2 of its seeds further along'
    """
    of_arm = f", {seeds} of its arm" if seeds else ""
    return f"{'calibrated on' if runs >= RANKS_FROM else 'adjusted by'} {told_by(runs, ahead)}{of_arm}"


def in_prior(runs: int, ahead: int = 0) -> str:
    """What an interval rests on whose past runs are in its prior alone; `ahead`: those of them that are on their way.

    >>> in_prior(0), in_prior(1), in_prior(3, ahead=1), in_prior(2, ahead=2)
    ('without past runs', 'with 1 past run', 'with 2 past runs and 1 as far along', 'with 2 runs as far along')
    """
    if not runs:
        return WITHOUT
    if ahead == runs:
        return f"with {_counted(runs, 'run')} as far along"
    return f"with {_counted(runs - ahead, 'past run')}" + (f" and {ahead} as far along" if ahead else "")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _side(estimate: Estimate, above: bool, even: float, width: float) -> float:
    """The half width of the interval on one side; `width`: of the range of rewards."""
    up, down = estimate.upper - estimate.median, estimate.median - estimate.lower
    side, other = (up, down) if above else (down, up)
    own = max(side, _LEAST_SIDE * other, _LEAST_HALF * width)
    return own + even * max(other - own, 0.0)
