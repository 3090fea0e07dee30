"""Runs of a sweep that share one budget of compute: asked for by its policy, decided in the background, shown here.

The worker allocates (worker/allocate.py), whenever it compares the sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import null, select, update
from sqlalchemy.orm import Session

from forecurve.science.planning.rounds import UNTIL_FORECAST
from server.comparisons.find import MOST_RUNS, too_many
from server.errors import Conflict, Invalid
from server.events.service import record
from server.runs.models import Run
from server.runs.service import is_over
from server.runs.states import TERMINAL, DesiredState

from .comparisons import ask_for_comparison
from .models import ALLOCATE, Sweep, SweepComparison
from .schemas import AllocationView, Policy, SweepChange

_NOT_YET = "Every run trains until it can be forecast; then it is said which of them train on."
NONE_OURS = "each is over, or left to its user"
"""Why no run goes on by its sweep, where that says nothing of any of them."""


class Spending(Protocol):
    """A run, as far as what it has spent goes."""

    @property
    def compute_unit(self) -> str: ...

    @property
    def budget_compute(self) -> float | None: ...

    @property
    def last_compute(self) -> float | None: ...


def allocation_view(session: Session, sweep: Sweep, runs: Sequence[Spending]) -> AllocationView | None:
    """What is allocated, and how much is spent by now; None where its policy is another."""
    if sweep.policy != ALLOCATE or sweep.budget_compute is None or not runs:
        return None
    row = session.get(SweepComparison, sweep.id)
    found = row.allocation if row is not None else None
    if found is None:
        found = _nothing_yet(runs, None if _has_ours(session, sweep) else NONE_OURS)
    if row is not None and row.result is not None and row.note is not None:  # it stands beside a comparison
        found = found | {"sentence": f"{row.note} {found['sentence']}"}
    return AllocationView(**found, budget=sweep.budget_compute, spent=spent_by(runs), unit=runs[0].compute_unit)


def _has_ours(session: Session, sweep: Sweep) -> bool:
    """Whether it says of a run how far that trains."""
    ours = select(Run.id).where(Run.sweep_id == sweep.id, Run.allocated, Run.status.not_in(TERMINAL))
    return session.scalar(ours.limit(1)) is not None


def spent_by(runs: Sequence[Spending]) -> float:
    """Compute of all runs, as far as their evaluations tell."""
    return sum(run.last_compute or 0.0 for run in runs)


def horizon_of(runs: Sequence[Spending]) -> float:
    """Compute at which runs are compared that share one budget: the largest that one of them has for itself."""
    return max((run.budget_compute for run in runs if run.budget_compute is not None), default=0.0)


def shared_budget(policy: Policy, asked: float | None, in_all: float, runs: int) -> float | None:
    """The budget that runs of a sweep share, `in_all` the sum of their own; None with a policy that allocates nothing.

    Raises:
        Invalid: a budget with another policy, or more runs than are compared.
    """
    if policy != ALLOCATE:
        if asked is not None:
            message = "runs share compute with policy `allocate` alone; send that too, or leave it out"
            raise Invalid.field("budget_compute", asked, message)
        return None
    if too_many(runs):
        message = f"compute is allocated to at most {MOST_RUNS} runs, and the sweep has {runs:,}; begin smaller ones"
        raise Invalid.field("policy", policy, message)
    return in_all if asked is None else asked


def change_policy(
    session: Session, sweep: Sweep, runs: Sequence[Run], body: SweepChange, *, actor: str, now: datetime
) -> None:
    """Give the sweep another policy or another budget. `sweep` and `runs`, all that it has, are locked.

    Runs that it begins to allocate train on until that is thought over; those that it held stay paused, and are their
    users' again.

    Raises:
        Invalid: see `shared_budget`.
    """
    policy: Policy = body.policy if "policy" in body.model_fields_set else sweep.policy  # type: ignore[assignment]
    asked = body.budget_compute if "budget_compute" in body.model_fields_set else None
    keeps = sweep.budget_compute if policy == sweep.policy else None
    in_all = sum(run.budget_compute or 0.0 for run in runs)
    budget = shared_budget(policy, asked, keeps or in_all, len(runs))
    if (policy, budget) == (sweep.policy, sweep.budget_compute):
        return
    states = {"from_state": sweep.policy, "to_state": policy}
    record(session, "sweep.policy", actor=actor, sweep_id=sweep.id, **states, budget_compute=budget)
    if (policy == ALLOCATE) != (sweep.policy == ALLOCATE):
        _hand_over(runs, to_sweep=policy == ALLOCATE)
        session.execute(update(SweepComparison).where(SweepComparison.sweep_id == sweep.id).values(allocation=null()))
    sweep.policy, sweep.budget_compute = policy, budget
    if policy == ALLOCATE:
        ask_for_comparison(session, sweep.id, now)


def check_may_grow(session: Session, sweep: Sweep, further: int) -> None:
    """That something is left for further runs, where all share one budget. `sweep` is locked.

    Raises:
        Conflict: it is spent.
        Invalid: they would be more than are compared.
    """
    if sweep.budget_compute is None:
        return
    runs = session.scalars(select(Run).where(Run.sweep_id == sweep.id)).all()
    shared_budget(ALLOCATE, None, sweep.budget_compute, len(runs) + further)
    if spent_by(runs) >= sweep.budget_compute:
        message = f"it is spent, and further runs would get nothing; `PATCH /v1/sweeps/{sweep.id}` takes a larger one"
        raise Conflict.field("budget_compute", sweep.budget_compute, message)


def _hand_over(runs: Sequence[Run], *, to_sweep: bool) -> None:
    """Whatever a person wants of a run already stands. Who ended one that is over stays known: those that their sweep
    stopped may still be the best."""
    for run in runs:
        if is_over(run):
            continue
        theirs = run.executor == "external" or run.desired_state != DesiredState.RUN
        run.allocated = to_sweep and not theirs
        run.goes_to = UNTIL_FORECAST if run.allocated else None
        run.version += 1  # whoever decided on what was wanted before must decide anew


def _nothing_yet(runs: Sequence[Spending], over: str | None) -> dict[str, Any]:
    return {
        "horizon": horizon_of(runs),
        "choice": None,
        "settled": False,
        "expected_regret": None,
        "over": over,
        "runs": [],
        "sentence": _NOT_YET if over is None else f"No run goes on by its sweep: {over}.",
        "planned_at": None,
    }
