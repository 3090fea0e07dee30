"""Unfinished runs of one sweep as siblings: joint draws of their curves.

Each run's own posterior is known by its draws. Arms are one family (`siblings`): what they share (how far up the unseen
ceiling is, say) is common to all arms of a joint draw and cancels where they are compared. The seeds of an arm are a
family of their own, closer than arms are. They are drawn together first; then their arm is a member of the sweep by the
centres of these draws, and a joint draw takes its runs as they were drawn with the centre. What draws one seed of an
arm to the other arms so draws all of them, and the mean of an arm is no better known than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, IntArray
from ..past.family import SEED_SPREAD, SPREAD
from ..past.parameters import Parameters, parameters_of
from ..posterior.sigmoid import log_compute, rise
from .siblings import Chosen, Effort, Family

if TYPE_CHECKING:
    from ..fitting.fit import Fit

JOINT_DRAWS = 2000
_ARMS = Effort((192, 192, 192, 768), kept=200)
_SEEDS = Effort((192, 192, 192, 2304), kept=1000)  # more centres: arms are told by them alone


@dataclass(frozen=True, eq=False)
class Joint:
    """Equally weighted joint draws, every array of shape (S, K): S draws, K runs; rewards in their own scale."""

    A: FloatArray
    B: FloatArray
    C_mid: FloatArray
    R0: FloatArray

    def run(self, at: int, compute: FloatArray) -> FloatArray:
        """The curve of one run at each compute: (S, G)."""
        g = rise(log_compute(compute), np.log(self.B[:, at]), np.log(self.C_mid[:, at])).T
        start, ceiling = self.R0[:, [at]], self.A[:, [at]]
        return np.asarray(start + (ceiling - start) * g)


def joint_draws(
    fits: Sequence[Fit], *, siblings: bool = True, seed: int = 0, arms: Sequence[int] | None = None
) -> Joint:
    """Joint draws of the curves of runs.

    Args:
        fits: one per run, in one unit of compute and on one scale of rewards; may be none.
        siblings: let them inform one another; else each stands for itself.
        seed: of the drawing.
        arms: of each run, (K,): runs of one arm are its seeds. By default each is an arm.
    """
    rng = np.random.default_rng(seed)
    if not fits:
        nothing = np.empty((JOINT_DRAWS, 0))
        return Joint(nothing, nothing, nothing, nothing)
    if siblings and len(fits) > 1:
        chosen = _together([parameters_of(fit) for fit in fits], range(len(fits)) if arms is None else arms, rng)
    else:
        chosen = np.stack([rng.integers(0, len(fit.all_draws.A), JOINT_DRAWS) for fit in fits], axis=1)
    draws = [fit.all_draws for fit in fits]
    pick = [[getattr(d, name)[chosen[:, at]] for at, d in enumerate(draws)] for name in ("A", "B", "C_mid", "R0")]
    A, B, C_mid, R0 = (np.stack(columns, axis=1) for columns in pick)
    return Joint(A, B, C_mid, R0)


def _together(runs: list[Parameters], arms: Sequence[int], rng: np.random.Generator) -> IntArray:
    """Indices of the runs' draws, (S, K)."""
    of_arm: dict[int, list[int]] = {}
    for at, arm in enumerate(arms):
        of_arm.setdefault(arm, []).append(at)
    groups = list(of_arm.values())
    seeds = {
        at: Family([runs[run] for run in group], SEED_SPREAD, _SEEDS).choose(JOINT_DRAWS, rng)
        for at, group in enumerate(groups)
        if len(group) > 1
    }
    if len(groups) == 1:
        return seeds[0].index
    known = [
        _by_centre(runs[group[0]], seeds[at]) if at in seeds else runs[group[0]] for at, group in enumerate(groups)
    ]
    rows = Family(known, SPREAD, _ARMS).choose(JOINT_DRAWS, rng).index
    chosen = np.empty((JOINT_DRAWS, len(runs)), dtype=np.int64)
    for at, group in enumerate(groups):
        chosen[:, group] = seeds[at].index[rows[:, at]] if at in seeds else rows[:, [at]]
    return chosen


def _by_centre(seed: Parameters, seeds: Chosen) -> Parameters:
    """An arm by the centres of its seeds, one of which is given."""
    return Parameters(seeds.centre, seeds.log_prior, seed.prior, seed.box, np.arange(len(seeds.centre)))
