"""Runs: creating, finding, and saying what is wanted of them. What is observed of them moves in lifecycle.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session, aliased

from forecurve.recipes import SECONDS_PER_UNIT, Recipe
from server.access.service import mint
from server.errors import Invalid, NotFound
from server.events.outbox import enqueue
from server.events.service import record
from server.labels.service import has_tag
from server.pagination import newest_first
from server.recipes.models import RecipeRow
from server.recipes.service import needed, resolve, store
from server.sweeps.models import Sweep

from . import fencing
from .history import record_of
from .models import Attempt, Run
from .room import Room
from .schemas import RunCreate
from .states import TERMINAL, DesiredState, Status

ADMIT_TASK = "worker.tasks.admit"
RECONCILE_TASK = "worker.tasks.reconcile_run"

TOLD = ("task", "arm", "seed")
"""What a run without a recipe may say of itself, so that other runs tell of it and it of them."""

IN_LINE = (Run.created_at, Run.is_control.desc(), Run.id)
"""The order in which runs get their places; whoever locks several goes by it too, so that two never
deadlock."""

ALLOCATION = "allocation"
"""The actor where a sweep says how far its runs train."""

_STRENGTH = [DesiredState.RUN, DesiredState.PAUSE, DesiredState.STOP, DesiredState.CANCEL]
"""A wish is replaced by a stronger one only: who asks to stop what is being cancelled gets the cancel."""


@dataclass(frozen=True)
class Created:
    run: Run
    ingest_token: str | None


def get_run(session: Session, run_id: str) -> Run:
    run = session.get(Run, run_id)
    if run is None:
        raise _unknown(run_id)
    return run


def get_runs(session: Session, run_ids: Sequence[str]) -> list[Run]:
    """Runs in the order of their ids given, in one query."""
    found = {run.id: run for run in session.scalars(select(Run).where(Run.id.in_(run_ids)))}
    missing = next((run_id for run_id in run_ids if run_id not in found), None)
    if missing is not None:
        raise _unknown(missing)
    return [found[run_id] for run_id in run_ids]


def lock_run(session: Session, run_id: str) -> Run:
    """The run as it is now, held against other writers until this transaction ends."""
    mine = select(Run).where(Run.id == run_id).with_for_update(key_share=True)
    run = session.scalar(mine.execution_options(populate_existing=True))
    if run is None:
        raise _unknown(run_id)
    return run


def current_attempt(session: Session, run: Run, number: int | None = None) -> Attempt:
    """The run's attempt of that number; its newest by default."""
    wanted = run.attempt if number is None else number
    attempt = session.scalar(select(Attempt).where(Attempt.run_id == run.id, Attempt.number == wanted))
    if attempt is None:
        raise NotFound.field("attempt", wanted, f"run {run.id} has no such attempt; its newest is {run.attempt}")
    return attempt


def list_runs(
    session: Session,
    *,
    statuses: Sequence[str] = (),
    sweep_id: str | None = None,
    arm: str | None = None,
    name: str | None = None,
    task: str | None = None,
    tags: Sequence[str] = (),
    archived: bool = False,
    cursor: str | None = None,
    limit: int = 50,
) -> tuple[Sequence[Run], str | None]:
    """One page of runs, newest first: of those that are archived, or of the others."""
    query = select(Run).where(Run.archived_at.is_not(None) if archived else Run.archived_at.is_(None))
    if statuses:
        query = query.where(Run.status.in_(_known(statuses)))
    if sweep_id is not None:
        query = query.where(Run.sweep_id == sweep_id)
    if arm is not None:
        query = query.where(Run.arm == arm)
    if name is not None:
        query = query.where(Run.name == name)
    if task is not None:
        query = query.where(Run.task == task)
    return newest_first(session, query.where(*map(is_tagged, tags)), Run.id, cursor, limit)


def is_tagged(tag: str) -> ColumnElement[bool]:
    """By itself, or by its sweep."""
    own, other = aliased(Run), aliased(Run)
    of_sweeps = select(other.id).join(Sweep, Sweep.id == other.sweep_id).where(has_tag(Sweep, tag))
    return Run.id.in_(select(own.id).where(has_tag(own, tag)).union_all(of_sweeps))  # an `or` would ask every run


def count_runs(session: Session) -> dict[str, int]:
    """How many runs have each status, all together but the archived ones."""
    listed = Run.archived_at.is_(None)
    return dict(session.execute(select(Run.status, func.count()).where(listed).group_by(Run.status)).all())


def list_attempts(
    session: Session, run_id: str, *, cursor: str | None, limit: int
) -> tuple[Sequence[Attempt], str | None]:
    """One page of a run's attempts, newest first."""
    get_run(session, run_id)
    return newest_first(session, select(Attempt).where(Attempt.run_id == run_id), Attempt.id, cursor, limit)


def recipe_of(session: Session, run: Run) -> RecipeRow:
    """The resolved recipe of a run; NotFound when it is only tracked and has none."""
    row = session.get(RecipeRow, run.recipe_id) if run.recipe_id is not None else None
    if row is None:
        raise NotFound.field("run_id", run.id, "the run has no recipe: it is only tracked here")
    return row


def create_run(
    session: Session, body: RunCreate, room: Room, *, actor: str, now: datetime, reports: bool = True
) -> Created:
    """One run outside of any sweep: queued for the cluster, or (external) waiting for its own reports.

    Without `reports` an external run gets no token for them.
    """
    recipe = resolve(session, body)
    if body.executor == "external":
        run = _external(session, body, recipe)
    else:
        room.check(needed(recipe))
        run = _launched(session, body, needed(recipe))
    run.tags, run.note = body.tags, body.note or None
    session.add(run)
    session.flush()
    record(session, "run.created", actor=actor, run_id=run.id, executor=run.executor)
    if body.executor == "external":
        session.add(Attempt(run_id=run.id, number=run.attempt))
        return Created(run, mint_for_attempt(session, run, now) if reports else None)
    enqueue(session, ADMIT_TASK)
    return Created(run, None)


def request_stop(session: Session, run: Run, *, actor: str, reason: str | None) -> Run:
    """Want the run to stop: it finishes its step, evaluates and writes a checkpoint; the reconciler sees to it.

    Raises:
        Over: it is over already.
    """
    return _request(session, run, DesiredState.STOP, actor=actor, reason=reason)


def request_stops(session: Session, locked: Sequence[Run], *, actor: str, reason: str | None) -> None:
    """Want those of the runs, which are locked, to stop that are not over; in one go, for there may be thousands."""
    for run in locked:
        if not is_over(run) and _is_stronger(DesiredState.STOP, run):
            _write_down(session, run, DesiredState.STOP, actor=actor, reason=reason)
    session.flush()


def request_cancel(session: Session, run: Run, *, actor: str, reason: str | None) -> Run:
    """Want the run to end at once, without waiting for a checkpoint. Errors as for `request_stop`."""
    return _request(session, run, DesiredState.CANCEL, actor=actor, reason=reason)


def launched_run(session: Session, recipe: Recipe, name: str, changes: dict[str, Any], **lineage: Any) -> Run:
    """A run that our own trainer is to do, with the unit and the budget of its recipe; not yet in the session."""
    row, _ = store(session, recipe)
    return Run(
        name=name,
        recipe_id=row.id,
        seed=recipe.seed,
        executor="ray",
        compute_unit=recipe.budget.unit,
        budget_compute=recipe.budget.compute,
        changes=changes,
        **lineage,
    )


def is_over(run: Run) -> bool:
    """Whether the run is in a terminal state."""
    return Status(run.status) in TERMINAL


def may_follow(run: Run, action: str) -> bool:
    """Whether advice can still be followed. Of a run that is over only `scale` can, by a fork; and not where its sweep
    stopped it, as the compute that its runs share tells more elsewhere."""
    if not is_over(run):
        return True
    return action == "scale" and not (run.allocated and run.status == Status.STOPPED)


def _request(session: Session, run: Run, wanted: DesiredState, *, actor: str, reason: str | None) -> Run:
    run = lock_run(session, run.id)
    if is_over(run):
        raise fencing.over(run)
    return want(session, run, wanted, actor=actor, reason=reason) if _is_stronger(wanted, run) else run


def _is_stronger(wanted: DesiredState, run: Run) -> bool:
    return _STRENGTH.index(wanted) > _STRENGTH.index(DesiredState(run.desired_state))


def want(session: Session, run: Run, wanted: DesiredState, *, actor: str, reason: str | None) -> Run:
    """Write down what a person wants of a run, which is locked; the reconciler sees to it."""
    _write_down(session, run, wanted, actor=actor, reason=reason)
    session.flush()
    return run


def _write_down(session: Session, run: Run, wanted: DesiredState, *, actor: str, reason: str | None) -> None:
    came_from = DesiredState(run.desired_state)
    leave_to(actor, run)
    run.desired_state, run.desired_reason = wanted, reason
    run.version += 1  # whoever decided on what was wanted before must decide anew
    record_of(session, run, "run.desired", actor=actor, from_state=came_from, to_state=wanted, reason=reason)
    enqueue(session, RECONCILE_TASK, run.id)


def leave_to(actor: str, run: Run) -> None:
    """A run that somebody else than its sweep says something of is theirs: that allocates nothing to it any more."""
    if actor != ALLOCATION:
        run.allocated, run.goes_to = False, None


def _launched(session: Session, body: RunCreate, recipe: Recipe) -> Run:
    for field in ("compute_unit", "budget_compute"):
        if getattr(body, field) is not None:
            other = {"compute_unit": "budget.unit", "budget_compute": "budget.compute"}[field]
            message = f"a launched run has the budget of its recipe; set it by `changes: {{{other}: ...}}`"
            raise Invalid.field(field, getattr(body, field), message)
    _check_told_by_recipe(body)
    return launched_run(session, recipe, body.name or recipe.name, body.changes)


def _check_told_by_recipe(body: RunCreate) -> None:
    for field in TOLD:
        if getattr(body, field) is not None:
            message = f"a run with a recipe has that by its recipe: leave `{field}` out, or the recipe"
            raise Invalid.field(field, getattr(body, field), message)


def _check_arm(body: RunCreate) -> None:
    """An arm is known by the task that it is of, and its runs by their seeds."""
    for field in ("task", "seed"):
        if body.arm is not None and getattr(body, field) is None:
            message = f"arm `{body.arm}` needs it: runs of one task and arm are told apart by their seeds"
            raise Invalid.field(field, None, message)


def _external(session: Session, body: RunCreate, recipe: Recipe | None) -> Run:
    unit = body.compute_unit or (recipe.budget.unit if recipe else None)
    if unit is None:
        message = f"an external run without a recipe needs its unit: one of {', '.join((*SECONDS_PER_UNIT, 'steps'))}"
        raise Invalid.field("compute_unit", None, message)
    if recipe is not None:
        _check_told_by_recipe(body)
    _check_arm(body)
    budget = body.budget_compute
    if budget is None and recipe is not None and unit == recipe.budget.unit:
        budget = recipe.budget.compute
    return Run(
        name=body.name or (recipe.name if recipe else "external"),
        recipe_id=store(session, recipe)[0].id if recipe else None,
        task=body.task,
        arm=body.arm,
        seed=recipe.seed if recipe else body.seed,
        executor="external",
        compute_unit=unit,
        budget_compute=budget,
        changes=body.changes,
        attempt=1,
    )


def mint_for_attempt(session: Session, run: Run, now: datetime) -> str:
    """The secret for the reports of an external run's newest attempt."""
    name = f"ingest {run.name}"
    _, secret = mint(session, kind="ingest", name=name, scopes=["ingest"], now=now, run_id=run.id, attempt=run.attempt)
    return secret


def _known(statuses: Sequence[str]) -> list[str]:
    for status in statuses:
        if status not in set(Status):
            raise Invalid.field("status", status, f"must be one of {', '.join(Status)}")
    return list(statuses)


def _unknown(run_id: str) -> NotFound:
    return NotFound.field("run_id", run_id, "no such run; `GET /v1/runs` lists them")
