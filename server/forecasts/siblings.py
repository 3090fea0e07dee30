"""What other runs tell: the prior of one more, and how far seeds lie apart. Their fits are kept in memory, by their
curves: most are over and hardly change."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from forecurve.science import CurveError, Estimate, Fit, PooledSeeds, Siblings, fit, pool_seeds, predict_ending
from forecurve.science.past.family import is_member, sibling_prior
from forecurve.science.past.telling import least_far_ahead
from forecurve.science.posterior.prior import Prior

from .fitted import MIN_POINTS, curve_of, rising
from .past_runs import PastRun, has_seeds

_FITS = 128  # some 350 kB each
_PRIORS = 64
_KIN = 4  # each fits its runs once more
_LEVELS = 4  # of shares, from one to twice as much


def prior_of(siblings: Sequence[PastRun], arm: str | None, unit: str, budget: float | None) -> Prior:
    """See `sibling_prior`: for a further run of `arm` with this budget, in this unit of compute. All arms without a
    seed among them are told the same."""
    finished = sum(one.tells_the_end(budget) for one in siblings)
    return _prior(tuple(siblings), arm if has_seeds(siblings, arm) else None, unit, finished)


@lru_cache(maxsize=_PRIORS)
def _prior(siblings: tuple[PastRun, ...], arm: str | None, unit: str, finished: int) -> Prior:
    fits = [found for run in siblings if (found := _alone(run, unit)) is not None]
    return sibling_prior(fits, arm, finished=finished)


def telling(siblings: Sequence[PastRun], unit: str) -> list[PastRun]:
    """Those that the prior rests on: see `is_member`."""
    return [run for run in siblings if (found := _alone(run, unit)) is not None and is_member(found)]


def retold(past: Sequence[PastRun], unit: str) -> Siblings | None:
    """The past runs as one another's past, for what would have been said of each by the others; None where all were
    forecast here. Of a run that was over before it came nothing was said, so it is said now, and of all of them alike.
    """
    return _siblings(tuple(past), unit) if any(one.imported for one in past) else None


def about(share: float) -> float:
    """A share of the budget, to within a tenth: what is worked out at it serves later evaluations, and other runs.
    Never all of it: a past run that is seen to its end was not forecast.

    >>> [round(about(share), 3) for share in (0.1, 0.105, 0.11, 0.25, 0.98)]
    [0.105, 0.105, 0.105, 0.25, 0.841]
    """
    return float(2 ** (min(round(_LEVELS * math.log2(share)), -1) / _LEVELS))


@lru_cache(maxsize=_KIN)
def _siblings(past: tuple[PastRun, ...], unit: str) -> Siblings:
    return Siblings([found.curve for run in past if (found := _alone(run, unit)) is not None])


def expected_ends(
    siblings: Sequence[PastRun], arm: str | None, unit: str, *, now: float, budget: float
) -> list[Estimate]:
    """How the seeds of an arm are expected to end that have not ended where a run will which has spent `now` of its
    budget, but are far ahead of it."""
    least = least_far_ahead(now, budget)
    far = [one for one in siblings if one.points[-1].compute >= least and not one.tells_the_end(budget)]
    seeds = {one.seed: one for one in far if arm is not None and one.arm == arm}  # a fork has its parent's seed
    return [predict_ending(found, budget) for one in seeds.values() if (found := _alone(one, unit)) is not None]


def seeds_of(past: Sequence[PastRun], unit: str) -> PooledSeeds:
    """See `pool_seeds`: the spread between the seeds of arms of past sweeps, one run a seed."""
    return _seeds(tuple(past), unit)


@lru_cache(maxsize=_PRIORS)
def _seeds(past: tuple[PastRun, ...], unit: str) -> PooledSeeds:
    arms: dict[str, dict[int | None, Fit]] = defaultdict(dict)  # a fork has its parent's seed, and half of its curve
    for run in past:
        if run.arm is not None and (found := _alone(run, unit)) is not None:
            arms[run.arm].setdefault(run.seed, found)
    return pool_seeds([list(seeds.values()) for seeds in arms.values()])


@lru_cache(maxsize=_FITS)
def _alone(run: PastRun, unit: str) -> Fit | None:
    """Its curve fitted by itself; None where there is none. Curves of one arm bear its name."""
    points = rising(run.points)
    if len(points) < MIN_POINTS:
        return None
    try:
        return fit(curve_of(run.arm or run.id, unit, points, run.seed, run.bounds))
    except CurveError:
        return None
