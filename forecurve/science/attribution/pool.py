"""The spread between seeds, pooled over every replicate there is: past sweeps, other arms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from .. import errors
from ..checks import check_kind
from ..curves.alike import check_one_range
from ..fitting.fit import Fit
from .matched import own_level
from .runs import Run, ceilings, distinct, log_computes, run_of
from .seeds import CEILING_SPREAD, COMPUTE_SPREAD, Group, SeedSpread, learn, summarised

ONE_RANGE = "one range of the reward is needed", "give all curves the same bounds"
"""What is said where rewards have several, and the way out."""


class PooledSeeds(NamedTuple):
    """For `compare(..., seed_sd=pooled.ceiling, seed_sd_log_compute=pooled.log_compute)`."""

    ceiling: SeedSpread
    log_compute: SeedSpread


def pool_seeds(groups: Iterable[Sequence[Fit]]) -> PooledSeeds:
    """How far runs of past sweeps lie apart that differ in their seed alone, over what `compare` guesses of it.

    Args:
        groups: each the fits of runs that differ in their seed alone, flat prior; groups of one teach nothing, and
            copies of one run count once, in the first group that has it. Only runs with an identified ceiling count.

    Returns:
        The sds of the ceiling, in the reward's own scale, and of the logarithm of the compute to a level.

    Raises:
        CompareError: what is no group of fits, or runs with different ranges of the reward.
    """
    check_kind("groups", groups, Iterable, "pass a list of lists of fits", errors.CompareError)
    fits = [_fits_of(f"groups[{at}]", group) for at, group in enumerate(groups)]
    first = {fit.curve.identity: at for at, group in reversed(list(enumerate(fits))) for fit in group}
    once = [[fit for fit in distinct(group) if first[fit.curve.identity] == at] for at, group in enumerate(fits)]
    return pool_runs([[run_of(fit) for fit in group] for group in once], _width(fits))


def _fits_of(field: str, group: object) -> list[Fit]:
    check_kind(field, group, Iterable, "pass a list of fits", errors.CompareError)
    fits = list(cast(Iterable[Fit], group))
    for one in fits:
        check_kind(field, one, Fit, "pass fit(curve) of each run", errors.CompareError)
    return fits


def pool_runs(groups: Iterable[Sequence[Run]], width: float = 1.0) -> PooledSeeds:
    """`pool_seeds` for runs whose draws are known, `width` the range of their rewards."""
    known = [[run for run in group if run.usable and run.identified] for group in groups]
    levels = [(group, own_level(group)) for group in known if len(group) > 1]
    return PooledSeeds(
        _learned(CEILING_SPREAD.scaled(width), [ceilings(group) for group in known]),
        _learned(COMPUTE_SPREAD, [log_computes(group, level) for group, level in levels if level is not None]),
    )


def _learned(before: SeedSpread, groups: Sequence[Group]) -> SeedSpread:
    replicates = sum(max(len(group) - 1, 0) for group in groups)
    return replace(summarised(before, learn(groups, before)), past=replicates) if replicates else before


def _width(groups: Sequence[Sequence[Fit]]) -> float:
    """Of the range of rewards that all runs share; 1 without runs."""
    curves = [fit.curve for group in groups for fit in group]
    check_one_range(curves, errors.CompareError, *ONE_RANGE)
    return curves[0].width if curves else 1.0
