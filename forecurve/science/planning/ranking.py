"""Which arm of a sweep is best where all are to go: arms by the mean of their seeds, with what seeds leave open.

An arm's worth is the mean of what its runs reach at the horizon (joint draws, see `standing`), give or take what a few
seeds leave open of it: N(0, tau^2 / n) with n runs, tau^2 as attribution has it. So two arms of one seed each that end
a hundredth apart are no settled matter, however well both curves are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..attribution import SeedSpread
from ..attribution.runs import runs_of
from ..checks import as_float, check_kind, whole_of
from ..curves.curve import Curve
from ..curves.margins import least_gain
from ..errors import PlanError
from ..fitting.fit import Fit
from ..fitting.given import fits_of
from ..values import Estimate, estimate_of
from ..wording import names_text, share_text
from .dominated import dominated, p_within
from .plan import SEEDS, check_alike, check_amounts, spread_of
from .standing import enter, standing
from .wording import horizon_text
from .worth import firsts, p_best, worth_of

_NAMED = 0.1  # an arm that is less likely than this to be the best is not named beside it
_MOST_NAMED = 3
_AHEAD = 0.5
_SURE = 0.95


@dataclass(frozen=True)
class Rank:
    """Where an arm stands among the others.

    Attributes:
        arm: its name.
        runs: how many it rests on, those that fell and have not come back among them: they may befall its next seed.
        fallen: how many these are.
        end: the mean of its seeds at the horizon, of all that it might have.
        p_best: P(no other arm's is higher).
        p_within_delta: P(it is within delta of the highest).
        dominated: whether it can be dropped, see `dominated`.
    """

    arm: str
    runs: int
    fallen: int
    end: Estimate
    p_best: float
    p_within_delta: float
    dominated: bool

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        return {**asdict(self), "end": self.end.to_dict()}


def rank(
    arms: Mapping[str, Curve | Fit | Sequence[Curve | Fit]],
    horizon: float,
    *,
    delta: float | None = None,
    seed_sd: float | SeedSpread | None = None,
    siblings: bool = True,
    seed: int = 0,
) -> tuple[Rank, ...]:
    """The arms of a sweep, the likeliest best first.

    Args:
        arms: name -> the curves of its seeds, or their fits, of which one will do, in one unit of compute and on one
            scale of rewards; copies of one run count once.
        horizon: compute at which they are compared, that of a full run. A run beyond it is read there.
        delta: the least difference in reward that matters; by default 0.01 of the range of rewards.
        seed_sd: the sd between seeds of one arm, as `compare` takes it; by default attribution's rough guess.
        siblings: let the runs inform one another.
        seed: of the draws.

    Raises:
        PlanError: no arms, an arm without runs or whose name is no text, mixed units or ranges, a horizon, delta or
            seed that cannot be.
        CompareError: a seed_sd that cannot be.
    """
    check_kind("arms", arms, Mapping, "pass name -> runs", PlanError)
    for name in arms:
        check_kind("arms", name, str, "call each arm by a text", PlanError)
    seed = whole_of("seed", seed, PlanError, SEEDS)
    by_name = sorted(arms.items())  # draws must not hang on the order in which they come
    groups = {name: fits_of(runs_of(name, runs, PlanError), PlanError) for name, runs in by_name}
    every = [one for fits in groups.values() for one in fits]
    check_alike(every)
    curve = every[0].curve
    check_amounts(curve, horizon=horizon, delta=delta)
    horizon = as_float(horizon)
    spread = spread_of(seed_sd, every[0])
    sizes = [len(fits) for fits in groups.values()]
    here = standing([enter(one, horizon) for one in every], horizon, siblings=siblings, seed=seed, sizes=sizes)
    worth, told = (
        worth_of(ends, sizes, list(groups), spread, np.random.default_rng(seed + 2))
        for ends in (here.ends, here.told_ends)
    )
    least = least_gain(delta, curve)
    within, dropped = p_within(worth, least), dominated(worth, least)
    best = p_best(worth)
    fallen = np.add.reduceat(here.fallen.astype(int), firsts(sizes))
    ranks = [
        Rank(
            name,
            sizes[at],
            int(fallen[at]),
            estimate_of(np.clip(told[:, at], *curve.bounds)),
            float(best[at]),
            float(within[at]),
            bool(dropped[at]),
        )
        for at, name in enumerate(groups)
    ]
    return tuple(sorted(ranks, key=lambda one: (-one.p_best, -one.end.median)))


def ranking_sentence(ranks: Sequence[Rank], horizon: float, unit: str, *, given: bool = False) -> str:
    """Which arm is best, as a colleague would say it; empty for a single one.

    Args:
        given: a person gave the horizon, a budget say, and finds it with all its digits.
    """
    if len(ranks) < 2:
        return ""
    where = f"{horizon_text(horizon, given=given)} {unit}"
    first, *others = ranks
    if first.p_best >= _SURE:
        said = f"Best at {where}: {first.arm} ({share_text(first.p_best)} sure)."
    else:
        named = [one for one in others if one.p_best >= _NAMED][: _MOST_NAMED - 1]
        odds = ", ".join(f"{one.arm} ({share_text(one.p_best)})" for one in (first, *named))
        said = f"{'Likeliest best' if first.p_best >= _AHEAD else 'None stands out as the best'} at {where}: {odds}."
    dominated = [one.arm for one in ranks if one.dominated]
    said += f" Dominated: {names_text(dominated)}." if dominated else ""
    fallen = [f"{one.fallen} of {one.runs} of {one.arm}" for one in ranks if one.fallen]
    return f"{said} Runs that fell count: {names_text(fallen, _MOST_NAMED)}." if fallen else said
