"""Planned runs become queued ones of a sweep: when it is made, and when it is extended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from forecurve.recipes import PlannedRun
from forecurve.science.planning.rounds import UNTIL_FORECAST
from server.database import new_id
from server.events.outbox import enqueue
from server.events.service import record
from server.runs.models import Run
from server.runs.service import ADMIT_TASK

from .models import ALLOCATE, Sweep


def queue_runs(
    session: Session,
    sweep: Sweep,
    planned: Sequence[PlannedRun],
    recipes: Mapping[tuple[str, str], str],
    *,
    numbered: bool,
    actor: str,
    now: datetime,
) -> list[Run]:
    """The runs, stored in the order in which they were planned, their events, and the call to admit them.

    Args:
        recipes: ids by digest and name, see `store_all`.
        numbered: their names have their seeds, which tell them from other runs of their arm.
    """
    runs = [_run(sweep, one, recipes, numbered, now) for one in planned]
    session.add_all(runs)
    session.flush()
    for run in runs:
        record(session, "run.created", actor=actor, run_id=run.id, sweep_id=sweep.id, executor=run.executor)
    enqueue(session, ADMIT_TASK)
    session.flush()
    return runs


def _run(
    sweep: Sweep, planned: PlannedRun, recipes: Mapping[tuple[str, str], str], numbered: bool, now: datetime
) -> Run:
    return Run(
        id=new_id("run"),
        name=f"{planned.arm} s{planned.seed}" if numbered else planned.arm,
        sweep_id=sweep.id,
        recipe_id=recipes[planned.recipe.digest, planned.recipe.name],
        arm=planned.arm,
        changes=planned.changes,
        is_control=planned.is_control,
        seed=planned.seed,
        compute_unit=planned.recipe.budget.unit,
        budget_compute=planned.recipe.budget.compute,
        allocated=sweep.policy == ALLOCATE,
        goes_to=UNTIL_FORECAST if sweep.policy == ALLOCATE else None,
        created_at=now,
        updated_at=now,
    )
