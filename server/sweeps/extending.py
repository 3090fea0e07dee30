"""A sweep is extended while it goes on or when it is over: further seeds of its arms, and arms that it has not.

What a comparison leaves undecided is decided so, in the same sweep: what it says rests on all of its runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count, islice
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from forecurve.recipes import MAX_RUNS, PlannedRun, Recipe, RecipeError, further_arm, load_recipe
from forecurve.recipes.errors import suggestion
from server.alerts.news import tell_end_no_more
from server.errors import Conflict, Invalid
from server.events.service import record
from server.recipes.models import RecipeRow
from server.recipes.service import get_recipe, store_all
from server.runs.models import Run
from server.runs.room import Room

from .allocation import check_may_grow
from .comparisons import ask_for_comparison
from .models import ALLOCATE, Sweep
from .queueing import queue_runs
from .schemas import MoreSeeds, NewArm
from .service import lock_sweep


@dataclass(frozen=True)
class _Arm:
    """What a sweep has of an arm: the recipe of its first run, and the seeds of all."""

    name: str
    run: Run
    seeds: set[int]


def add_seeds(session: Session, sweep_id: str, body: MoreSeeds, room: Room, *, actor: str, now: datetime) -> Sweep:
    """Queue further seeds of arms that the sweep has.

    An arm gets the lowest seeds that it lacks, so that arms which were extended apart have the same ones.

    Raises:
        Conflict: the sweep is archived.
        Invalid: it has no such arm, or would have too many runs.
        RecipeError: the cluster has no room for one of them any more.
    """
    sweep = _to_extend(session, sweep_id)
    arms = _arms(session, sweep)
    wanted = _wanted(arms, body)
    recipes = _recipes(session, [arm for arm in arms if wanted[arm.name]])
    planned = [
        PlannedRun(
            arm=arm.name,
            changes=arm.run.changes,
            seed=seed,
            is_control=arm.run.is_control,
            recipe=recipes[arm.name].model_copy(update={"seed": seed}),
        )
        for arm in arms
        for seed in _lacking(arm, wanted[arm.name])
    ]
    if not planned:
        raise Invalid.field("control_seeds", body.control_seeds, "so no arm gets any; give `arms` too, or more")
    _check_size(arms, planned, "seeds", body.seeds)
    return _extended(session, sweep, planned, room, numbered=True, actor=actor, now=now)


def add_arm(session: Session, sweep_id: str, body: NewArm, room: Room, *, actor: str, now: datetime) -> Sweep:
    """Queue an arm that the sweep has not: its base recipe with other changes, with each seed that the control has.

    Raises:
        Conflict: the sweep is archived.
        Invalid: an arm of the sweep is called so or is the same, or it would have too many runs.
        RecipeError: a change does not hold, counts compute in another unit, or the cluster has no room for it.
    """
    sweep = _to_extend(session, sweep_id)
    arms = _arms(session, sweep)
    base = load_recipe(get_recipe(session, sweep.base_recipe_id).body)
    new = further_arm(base, body.changes, body.name)
    if any(arm.name == new.name for arm in arms):
        raise Invalid.field(
            "name", new.name, "the sweep has an arm of this name; give another, or add seeds to that one"
        )
    control = next(arm for arm in arms if arm.run.is_control)
    if new.recipe.budget.unit != control.run.compute_unit:
        message = f"the others count compute in {control.run.compute_unit}, and no curve could be compared"
        raise RecipeError.one("changes.budget.unit", new.recipe.budget.unit, message)
    planned = [
        PlannedRun(
            arm=new.name,
            changes=new.changes,
            seed=seed,
            is_control=False,
            recipe=new.recipe.model_copy(update={"seed": seed}),
        )
        for seed in sorted(control.seeds)
    ]
    _refuse_same(session, sweep, planned)
    _check_size(arms, planned, "changes", body.changes)
    return _extended(session, sweep, planned, room, numbered=len(planned) > 1, actor=actor, now=now)


def _to_extend(session: Session, sweep_id: str) -> Sweep:
    sweep = lock_sweep(session, sweep_id)
    if sweep.archived_at is not None:
        raise Conflict.field("sweep_id", sweep_id, "the sweep is archived; restore it first")
    return sweep


def _extended(
    session: Session,
    sweep: Sweep,
    planned: Sequence[PlannedRun],
    room: Room,
    *,
    numbered: bool,
    actor: str,
    now: datetime,
) -> Sweep:
    for run in planned:
        room.check(run.recipe)
    check_may_grow(session, sweep, len(planned))
    recipes = store_all(session, [run.recipe for run in planned])
    told = [{"arm": run.arm, "seed": run.seed} for run in planned]
    record(session, "sweep.extended", actor=actor, sweep_id=sweep.id, runs=told)
    queue_runs(session, sweep, planned, recipes, numbered=numbered, actor=actor, now=now)
    tell_end_no_more(session, sweep.id)
    if sweep.policy == ALLOCATE:  # it may have said that none goes on, and new ones may wait long for a place
        ask_for_comparison(session, sweep.id, now)
    return sweep


def _check_size(arms: Sequence[_Arm], planned: Sequence[PlannedRun], field: str, asked: Any) -> None:
    in_all = sum(len(arm.seeds) for arm in arms) + len(planned)
    if in_all > MAX_RUNS:
        message = f"the sweep would have {in_all:,} runs, and has {MAX_RUNS:,} at most; begin another"
        raise Invalid.field(field, asked, message)


def _arms(session: Session, sweep: Sweep) -> list[_Arm]:
    """In the order in which they were planned."""
    of_arm: dict[str, list[Run]] = defaultdict(list)
    for run in session.scalars(select(Run).where(Run.sweep_id == sweep.id).order_by(Run.id)):
        of_arm[run.arm or run.name].append(run)
    return [_Arm(name, runs[0], {run.seed for run in runs if run.seed is not None}) for name, runs in of_arm.items()]


def _wanted(arms: Sequence[_Arm], body: MoreSeeds) -> dict[str, int]:
    """How many further seeds each arm is to get."""
    names = [arm.name for arm in arms]
    for at, name in enumerate(body.arms or ()):
        if name not in names:
            message = f"the sweep has no such arm{suggestion(name, names)}"
            raise Invalid.field(f"arms.{at}", name, message)
    chosen = names if body.arms is None else body.arms
    wanted = {name: body.seeds if name in chosen else 0 for name in names}
    if body.control_seeds is not None:
        wanted |= {arm.name: body.control_seeds for arm in arms if arm.run.is_control}
    return wanted


def _lacking(arm: _Arm, wanted: int) -> list[int]:
    return list(islice((seed for seed in count() if seed not in arm.seeds), wanted))


def _recipes(session: Session, arms: Sequence[_Arm]) -> dict[str, Recipe]:
    ids = {arm.run.recipe_id: arm.name for arm in arms}
    rows = session.execute(select(RecipeRow.id, RecipeRow.body).where(RecipeRow.id.in_(ids)))
    return {ids[row.id]: load_recipe(row.body) for row in rows}


def _refuse_same(session: Session, sweep: Sweep, planned: Sequence[PlannedRun]) -> None:
    digests = [run.recipe.digest for run in planned]
    same = select(Run.arm).join(RecipeRow, RecipeRow.id == Run.recipe_id)
    arm = session.scalar(same.where(Run.sweep_id == sweep.id, RecipeRow.digest.in_(digests)).limit(1))
    if arm is not None:
        raise Invalid.field("changes", planned[0].changes, f"arm `{arm}` has the same recipe; add seeds to that one")
