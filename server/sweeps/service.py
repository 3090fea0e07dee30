"""Sweeps: created whole in one transaction, listed, stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from server.errors import Conflict, NotFound
from server.events.service import record
from server.labels.service import has_tag, relabel
from server.pagination import newest_first
from server.recipes.service import store_all
from server.runs.models import Run
from server.runs.room import Room
from server.runs.schemas import RunView
from server.runs.service import IN_LINE, request_stops
from server.runs.states import TERMINAL
from server.runs.views import run_views

from .allocation import allocation_view, change_policy, shared_budget
from .comparisons import read_comparison
from .deciding import with_further_seeds
from .models import Sweep
from .outline import RunOutline, outlines
from .planning import Plan, make_plan
from .queueing import queue_runs
from .schemas import (
    AllocationView,
    ComparisonView,
    SweepChange,
    SweepCreate,
    SweepPlan,
    SweepPlanRequest,
    SweepRead,
    SweepSummary,
)
from .sentence import afterwards, sweep_sentence
from .time_left import through_at


@dataclass(frozen=True)
class SweepOutline:
    """One sweep with the outlines of its runs, control first, and what there is to say of them."""

    sweep: Sweep
    sentence: str
    through_at: datetime | None
    comparison: ComparisonView | None
    allocation: AllocationView | None
    runs: list[RunOutline]


def create_sweep(session: Session, body: SweepCreate, room: Room, *, actor: str, now: datetime) -> Sweep:
    """Recipes, sweep, queued runs, events and the call to admit them: all in the caller's transaction.

    Raises:
        Conflict: `plan_hash` is not that of this plan.
        RecipeError, Invalid, NotFound: see `make_plan`.
    """
    plan = make_plan(session, body, room)
    if body.plan_hash is not None and body.plan_hash != plan.hash:
        message = f"the plan is now {plan.hash}; look at `POST /v1/sweeps:plan` again and send its hash"
        raise Conflict.field("plan_hash", body.plan_hash, message, plan_hash=plan.hash)
    budget = _shared(body, plan)
    recipes = store_all(session, [plan.base, *(run.recipe for run in plan.runs)])
    sweep = Sweep(
        name=plan.name,
        base_recipe_id=recipes[plan.base.digest, plan.base.name],
        design=plan.design.model_dump(mode="json"),
        plan_hash=plan.hash,
        policy=body.policy,
        budget_compute=budget,
        tags=body.tags,
        note=body.note or None,
        created_at=now,
    )
    session.add(sweep)
    session.flush()
    record(session, "sweep.created", actor=actor, sweep_id=sweep.id, runs=len(plan.runs), name=sweep.name)
    several_seeds = len({run.seed for run in plan.runs}) > 1
    queue_runs(session, sweep, plan.runs, recipes, numbered=several_seeds, actor=actor, now=now)
    return sweep


def plan_view(body: SweepPlanRequest, plan: Plan) -> SweepPlan:
    """The plan of `body`, as it is told.

    Raises:
        Invalid: see `shared_budget`.
    """
    return plan.view(_shared(body, plan))


def _shared(body: SweepPlanRequest, plan: Plan) -> float | None:
    return shared_budget(body.policy, body.budget_compute, plan.compute.total, len(plan.runs))


def get_sweep(session: Session, sweep_id: str) -> Sweep:
    sweep = session.get(Sweep, sweep_id)
    if sweep is None:
        raise NotFound.field("sweep_id", sweep_id, "no such sweep; `GET /v1/sweeps` lists them")
    return sweep


def lock_sweep(session: Session, sweep_id: str) -> Sweep:
    """The sweep as it is now, held against other writers until this transaction ends."""
    mine = select(Sweep).where(Sweep.id == sweep_id).with_for_update(key_share=True)
    return session.scalar(mine.execution_options(populate_existing=True)) or get_sweep(session, sweep_id)


def lock_whole(session: Session, sweep_id: str) -> tuple[Sweep, list[Run]]:
    """The sweep and its runs, held. Runs first, as where one ends and tells its sweep. It may have been extended
    meanwhile: new ones are read, and not waited for, since whoever holds one may wait for the sweep."""
    mine = select(Run).where(Run.sweep_id == sweep_id).order_by(*IN_LINE).execution_options(populate_existing=True)
    session.scalars(mine.with_for_update(key_share=True)).all()
    sweep = lock_sweep(session, sweep_id)
    return sweep, list(session.scalars(mine))


def list_sweeps(
    session: Session,
    *,
    name: str | None = None,
    tags: Sequence[str] = (),
    archived: bool = False,
    cursor: str | None,
    limit: int,
) -> tuple[Sequence[Sweep], str | None]:
    """One page of sweeps, newest first: of those that are archived, or of the others; all, or with a name or tags."""
    query = select(Sweep).where(Sweep.archived_at.is_not(None) if archived else Sweep.archived_at.is_(None))
    if name is not None:
        query = query.where(Sweep.name == name)
    return newest_first(session, query.where(*(has_tag(Sweep, tag) for tag in tags)), Sweep.id, cursor, limit)


def change_sweep(session: Session, sweep_id: str, body: SweepChange, *, actor: str, now: datetime) -> Sweep:
    """Give the sweep another name, policy, shared budget, tags or note. The same ones change nothing.

    Raises:
        Invalid: it would have too many tags; or a budget goes with its policy, or runs, that cannot.
    """
    if body.model_fields_set & {"policy", "budget_compute"}:
        sweep, runs = lock_whole(session, sweep_id)
        change_policy(session, sweep, runs, body, actor=actor, now=now)
    sweep = lock_sweep(session, sweep_id)
    if "name" in body.model_fields_set and body.name != sweep.name:
        states = {"from_state": sweep.name, "to_state": body.name}
        record(session, "sweep.renamed", actor=actor, sweep_id=sweep.id, **states)
        sweep.name = body.name
    for changed in relabel(sweep, body):
        record(session, f"sweep.{changed.kind}", actor=actor, sweep_id=sweep.id, **changed.said)
    session.flush()
    return sweep


def sweep_runs(session: Session, sweep_id: str) -> Sequence[Run]:
    """Runs of a sweep as they were planned: control first."""
    return session.scalars(select(Run).where(Run.sweep_id == sweep_id).order_by(Run.id)).all()


def stop_sweep(session: Session, sweep_id: str, *, actor: str, reason: str | None) -> Sweep:
    """Want every run of the sweep that is not over to stop. A second time changes nothing."""
    sweep = get_sweep(session, sweep_id)
    mine = select(Run).where(Run.sweep_id == sweep_id).order_by(*IN_LINE)
    locked = mine.with_for_update(key_share=True).execution_options(populate_existing=True)
    request_stops(session, session.scalars(locked).all(), actor=actor, reason=reason)
    return sweep


def sweep_summaries(session: Session, sweeps: Sequence[Sweep]) -> list[SweepSummary]:
    """Sweeps with the statuses of their runs counted, in one query."""
    counts: dict[str, dict[str, int]] = {sweep.id: {} for sweep in sweeps}
    counted = select(Run.sweep_id, Run.status, func.count()).where(Run.sweep_id.in_(counts))
    for sweep_id, status, count in session.execute(counted.group_by(Run.sweep_id, Run.status)):
        if sweep_id is not None:
            counts[sweep_id][status] = count
    return [_summary(sweep, counts[sweep.id]) for sweep in sweeps]


def sweep_read(session: Session, sweep: Sweep, now: datetime) -> SweepRead:
    """One sweep with its runs and what there is to say of them."""
    summary = sweep_summaries(session, [sweep])[0]
    views = run_views(session, sweep_runs(session, sweep.id))
    comparison, sentence = _said(session, sweep, views)
    return SweepRead(
        **dict(summary),
        sentence=sentence,
        through_at=through_at(session, sweep, now),
        comparison=comparison,
        allocation=allocation_view(session, sweep, views),
        runs=views,
    )


def sweep_outline(session: Session, sweep: Sweep, now: datetime) -> SweepOutline:
    """The same with the outlines of its runs."""
    runs = outlines(session, sweep.id)
    comparison, sentence = _said(session, sweep, runs)
    allocation = allocation_view(session, sweep, runs)
    return SweepOutline(sweep, sentence, through_at(session, sweep, now), comparison, allocation, runs)


def _said(session: Session, sweep: Sweep, runs: Sequence[RunView | RunOutline]) -> tuple[ComparisonView | None, str]:
    """The comparison, and the sentence about the sweep."""
    compared, reason = read_comparison(session, sweep.id)
    comparison = with_further_seeds(compared, runs) if compared and sweep.archived_at is None else compared
    over = all(run.status in TERMINAL for run in runs)
    said = reason if comparison is None else afterwards(comparison) if over else comparison.sentence
    best = comparison.ranking.sentence if comparison and comparison.ranking else None
    return comparison, sweep_sentence(runs, best, said)


def _summary(sweep: Sweep, statuses: dict[str, int]) -> SweepSummary:
    return SweepSummary(
        id=sweep.id,
        name=sweep.name,
        base_recipe_id=sweep.base_recipe_id,
        design=sweep.design,
        plan_hash=sweep.plan_hash,
        policy=sweep.policy,
        budget_compute=sweep.budget_compute,
        tags=sweep.tags,
        note=sweep.note,
        created_at=sweep.created_at,
        archived_at=sweep.archived_at,
        statuses=statuses,
    )
