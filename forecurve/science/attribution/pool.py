"""The spread between seeds, pooled over every replicate there is: past sweeps, other arms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..fitting import Fit
from .runs import ceilings, distinct, run_of
from .seeds import CEILING_SPREAD, SeedSpread, learn, summarised


def pool_seeds(groups: Iterable[Sequence[Fit]], prior: SeedSpread = CEILING_SPREAD) -> SeedSpread:
    """sd of the ceiling between seeds, for `compare(..., seed_sd=)`.

    Args:
        groups: each the fits of runs that differ in their seed alone, flat prior; groups of one teach nothing, and
            copies of one run count once.
        prior: what is believed before; the paper's three runs by default.

    Returns:
        The posterior of the sd, summarised by a scaled inverse chi-square.
    """
    runs = [[run_of(fit) for fit in distinct(group)] for group in groups]
    usable = [[run for run in group if run.usable and run.identified] for group in runs]
    return summarised(prior, learn([ceilings(group) for group in usable], prior))
