"""Which curves of a large sweep are drawn one by one: what a person asks for first, few enough to be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from .outline import RunOutline, by_arm

WHOLE = 100
"""Sweeps of up to so many runs are listed on one page, and all their curves given."""

BEST = 9


@dataclass(frozen=True)
class Drawn:
    """Runs that stand for their arms, the control's first, then from the highest down; and which they are, in words."""

    ids: Sequence[str]
    said: str


def drawn_of(runs: Sequence[RunOutline]) -> Drawn:
    """The middle run of every arm; of many arms that of the control, the best, the middle and the last.

    Arms that were not evaluated are left out, unless none was.
    An arm stands where its runs are forecast to be at the budget, or where they are now without a forecast.
    """
    evaluated = [run for run in runs if run.last_reward is not None]
    middles = [_middle(mine) for mine in by_arm(evaluated or runs).values()]
    controls = [run for run in middles if run.is_control]
    others = sorted((run for run in middles if not run.is_control), key=_stands, reverse=True)
    first = "the control, " if controls else ""
    if len(others) <= BEST + 2:
        return Drawn([run.id for run in controls + others], f"{first}every arm, each by its middle run")
    few = [*others[:BEST], others[len(others) // 2], others[-1]]
    said = f"{first}the {BEST} arms forecast highest, the one in the middle and the lowest, each by its middle run"
    return Drawn([run.id for run in controls + few], said)


def _middle(runs: Sequence[RunOutline]) -> RunOutline:
    at = median_low(_stands(run) for run in runs)
    return min(runs, key=lambda run: (abs(_stands(run) - at), run.id))


def _stands(run: RunOutline) -> float:
    return run.at_budget.median if run.at_budget else run.last_reward or 0.0
