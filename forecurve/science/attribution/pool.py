"""The spread between seeds, pooled over every replicate there is: past sweeps, other arms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import errors
from ..fitting import Fit
from .runs import ceilings, distinct, run_of
from .seeds import CEILING_SPREAD, SeedSpread, learn, summarised


def pool_seeds(groups: Iterable[Sequence[Fit]], prior: SeedSpread | None = None) -> SeedSpread:
    """sd of the ceiling between seeds, for `compare(..., seed_sd=)`.

    Args:
        groups: each the fits of runs that differ in their seed alone, flat prior; groups of one teach nothing, and
            copies of one run count once.
        prior: what is believed before; the paper's three runs by default, as a share of the range of rewards.

    Returns:
        The posterior of the sd, in the reward's own scale, summarised by a scaled inverse chi-square.

    Raises:
        CompareError: runs with different ranges of the reward.
    """
    fits = [list(group) for group in groups]
    prior = CEILING_SPREAD.scaled(_width(fits)) if prior is None else prior
    runs = [[run_of(fit) for fit in distinct(group)] for group in fits]
    usable = [[run for run in group if run.usable and run.identified] for group in runs]
    return summarised(prior, learn([ceilings(group) for group in usable], prior))


def _width(groups: Sequence[Sequence[Fit]]) -> float:
    """Of the range of rewards that all runs share; 1 without runs."""
    ranges = sorted({fit.curve.bounds for group in groups for fit in group})
    if len(ranges) > 1:
        raise errors.CompareError(
            "bounds", ranges, "one range of the reward is needed", "give all curves the same bounds"
        )
    return ranges[0][1] - ranges[0][0] if ranges else 1.0
