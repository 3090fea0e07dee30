"""The compute that runs of a sweep share, as its page shows it: what is spent of it, and what becomes of each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from forecurve.allocated import TOLD_BY, becomes
from server.runs.models import Run
from server.runs.schemas import RunView
from server.runs.service import get_runs
from server.sweeps.schemas import AllocatedRun, AllocationView
from server.sweeps.service import SweepOutline

from .formats import compute

MOST_TOLD = 20
"""Runs that are in sight; the others are one press away."""


@dataclass(frozen=True)
class Sharer:
    """A run, and how it stands among the others; None where it is not compared."""

    run: Run
    becomes: str
    outlook: AllocatedRun | None


@dataclass(frozen=True)
class Shared:
    """What is shared.

    Attributes:
        compared: the likeliest best first.
        others: runs that are not compared, or not yet.
    """

    view: AllocationView
    compared: Sequence[Sharer]
    others: Sequence[Sharer]

    @property
    def by_arm(self) -> bool:
        """Whether an arm has several runs, by the mean of which it is chosen."""
        return any(one.seed_of is not None for one in self.view.runs)

    @property
    def says_why(self) -> bool:
        """Whether of any run there is a reason to train on; once all is spent there is none."""
        return any(one.reason for one in self.view.runs)

    @property
    def percent(self) -> float:
        """Of the budget that is spent; what is spent beyond it is not drawn."""
        return round(min(100.0, 100 * self.view.spent / self.view.budget), 1)


def shared_by(session: Session, found: SweepOutline) -> Shared | None:
    """Nothing where a sweep's policy is another."""
    view = found.allocation
    if view is None:
        return None
    runs = {run.id: run for run in get_runs(session, [run.id for run in found.runs])}  # 300 at most
    compared = [Sharer(runs[one.run_id], becomes_of(runs[one.run_id]), one) for one in view.runs if one.run_id in runs]
    known = {one.run.id for one in compared}
    return Shared(view, compared, [Sharer(run, becomes_of(run), None) for run in runs.values() if run.id not in known])


def becomes_of(run: Run | RunView) -> str:
    """What becomes of a run whose sweep shares its compute, in words."""
    told = {name: getattr(run, name) for name in TOLD_BY}
    return becomes(lambda amount: compute(amount, run.compute_unit), **told).replace("'", "’")
