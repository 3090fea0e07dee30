"""Forks: runs that begin at a checkpoint of another run, mostly with a changed recipe.

A fork's trainer reads the parent's files, so they must outlast the parent's retention until the fork has a checkpoint
of its own. The service cannot reach them; the parent's trainer hears of it with every heartbeat (`held_steps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import exists, select
from sqlalchemy.orm import Session, aliased

from forecurve.recipes import SECONDS_PER_UNIT, Recipe, load_recipe, other_course, other_weights, with_changes
from server.checkpoints.models import Checkpoint
from server.checkpoints.retention import Mark, kept
from server.errors import Conflict, Invalid, NotFound
from server.events.outbox import enqueue
from server.events.service import record
from server.metrics.curve import inherit
from server.metrics.dirty import mark_dirty
from server.pagination import newest_first

from .history import record_of
from .models import Run
from .room import Room
from .schemas import ForkCreate
from .service import ADMIT_TASK, get_run, launched_run, lock_run, recipe_of
from .states import TERMINAL


def fork_run(session: Session, run_id: str, body: ForkCreate, room: Room, *, actor: str, now: datetime) -> Run:
    """Queue a run that begins at a checkpoint of run `run_id`.

    Where its recipe takes the course of its parent's, which mostly means the same with a larger budget, its curve
    begins with its parent's, and its forecast is made before it starts.

    Raises:
        NotFound: no such run or checkpoint.
        Conflict: the run has no checkpoint, or its trainer has dropped this one; it is not launched by the service.
        RecipeError: a change does not hold, or the cluster has no room for it.
        Invalid: nothing would be left to train, or the weights would not fit the model.
    """
    parent = lock_run(session, run_id)  # no checkpoint is reported meanwhile, and no heartbeat answered
    if parent.executor == "external":
        message = "its trainer was launched by you and keeps its checkpoints itself; go on from them there"
        raise Conflict.field("executor", parent.executor, f"run {parent.id} cannot be forked here: {message}")
    theirs = load_recipe(recipe_of(session, parent).body)
    begin = _checkpoint(session, parent, theirs, body)
    recipe = with_changes(theirs, body.changes)
    room.check(recipe)
    _check_fits(theirs, recipe)
    _check_goes_on(parent, begin, recipe)
    fork = _fork(session, parent, begin, recipe, body)
    session.add(fork)
    session.flush()
    if not other_course(theirs, recipe):
        _inherit(session, fork, begin, now)
    _record(session, fork, parent, actor)
    enqueue(session, ADMIT_TASK)
    return fork


def list_forks(session: Session, run_id: str, *, cursor: str | None, limit: int) -> tuple[Sequence[Run], str | None]:
    """One page of the runs that began at a checkpoint of this one, newest first."""
    get_run(session, run_id)
    return newest_first(session, select(Run).where(Run.parent_run_id == run_id), Run.id, cursor, limit)


def on_disk(session: Session, run: Run) -> list[Checkpoint]:
    """The run's checkpoints that a fork can begin at, newest first: those that its trainer keeps, by its recipe."""
    there = _kept(session, run)
    rows = {row.id: row for row in session.scalars(select(Checkpoint).where(Checkpoint.id.in_(there)))}
    return [rows[id_] for id_ in there]


def kept_ids(session: Session, run: Run) -> frozenset[str] | None:
    """Ids of the checkpoints that a fork can begin at; None of a run that its user launched, and keeps them for."""
    return frozenset(_kept(session, run)) if run.executor == "ray" and run.recipe_id else None


def _kept(session: Session, run: Run) -> list[str]:
    """Newest first."""
    recipe = load_recipe(recipe_of(session, run).body)
    return [mark.id for mark in _on_disk(session, run, recipe, _reported(session, run))]


def held_steps(session: Session, run: Run) -> list[int]:
    """Steps of the run's checkpoints that forks still need: those of forks without a checkpoint of their own."""
    fork = aliased(Run)
    without = ~exists().where(Checkpoint.run_id == fork.id)
    waiting = select(fork.parent_step).where(fork.parent_run_id == run.id, fork.status.not_in(TERMINAL), without)
    return [step for step in session.scalars(waiting.distinct().order_by(fork.parent_step)) if step is not None]


def _checkpoint(session: Session, run: Run, recipe: Recipe, body: ForkCreate) -> Checkpoint:
    """The checkpoint that is asked for, the newest by default."""
    reported = _reported(session, run)
    policy = recipe.checkpoint
    if not reported:
        message = f"run {run.id} has none yet; its trainer writes one every {policy.every_steps} steps and at its end"
        raise Conflict.field("checkpoint", None, message, state=run.status)
    there = _on_disk(session, run, recipe, reported)
    meant = [each for each in there if _is_meant(each, body)]
    if meant:
        return session.get_one(Checkpoint, meant[0].id)
    field = "checkpoint_id" if body.checkpoint_id else "step"
    way_out = f"fork it from step {' or '.join(str(each.step) for each in there)}"
    if any(_is_meant(each, body) for each in reported):
        why = f"its files are gone: checkpoint.keep_last is {policy.keep_last}, or a later attempt replaced it"
        raise Conflict.field(field, getattr(body, field), f"{why}; {way_out}")
    raise NotFound.field(field, getattr(body, field), f"run {run.id} has no such checkpoint; {way_out}")


def _reported(session: Session, run: Run) -> list[Mark]:
    """All of them, without their paths and digests: a long run has thousands, of which few are on disk."""
    marks = select(Checkpoint.id, Checkpoint.attempt, Checkpoint.step).where(Checkpoint.run_id == run.id)
    return [Mark(*row) for row in session.execute(marks)]


def _on_disk(session: Session, run: Run, recipe: Recipe, reported: list[Mark]) -> list[Mark]:
    policy, held = recipe.checkpoint, held_steps(session, run)
    return kept(reported, keep_last=policy.keep_last, keep_every=policy.keep_every, held=held)


def _is_meant(checkpoint: Mark, body: ForkCreate) -> bool:
    return body.step in (None, checkpoint.step) and body.checkpoint_id in (None, checkpoint.id)


def _check_fits(theirs: Recipe, recipe: Recipe) -> None:
    for path, (before, after) in other_weights(theirs, recipe).items():
        message = f"the checkpoint's weights were made with {before!r}; leave it, or start a new run"
        raise Invalid.field(path, after, message)


def _check_goes_on(parent: Run, begin: Checkpoint, recipe: Recipe) -> None:
    """A fork counts steps and compute on from the checkpoint; it must have some of both left."""
    budget = recipe.budget
    if begin.step >= budget.max_steps:
        message = f"the checkpoint is of step {begin.step} already; allow more steps, or begin at an earlier one"
        raise Invalid.field("budget.max_steps", budget.max_steps, message)
    spent = _spent(begin, parent.compute_unit, budget.unit)
    if spent is not None and spent >= budget.compute:
        message = (
            f"{spent:g} {budget.unit} were spent up to the checkpoint of step {begin.step}, and a fork counts on from "
            "there; raise it, or begin at an earlier one"
        )
        raise Invalid.field("budget.compute", budget.compute, message)


def _spent(begin: Checkpoint, unit: str, wanted: str) -> float | None:
    """Compute up to the checkpoint in another unit; None where only the trainer's ledger knows."""
    if wanted == unit:
        return begin.compute
    if wanted == "steps":
        return float(begin.step)
    if begin.compute is None or unit == "steps" or unit.partition("-")[0] != wanted.partition("-")[0]:
        return None
    return begin.compute * SECONDS_PER_UNIT[unit] / SECONDS_PER_UNIT[wanted]


def _fork(session: Session, parent: Run, begin: Checkpoint, recipe: Recipe, body: ForkCreate) -> Run:
    lineage = {"parent_run_id": parent.id, "parent_checkpoint_id": begin.id, "parent_step": begin.step}
    labels = {"tags": body.tags, "note": body.note or None}
    name = body.name or f"{parent.name} from step {begin.step}"
    return launched_run(session, recipe, name, body.changes, **lineage, **labels)


def _inherit(session: Session, fork: Run, begin: Checkpoint, now: datetime) -> None:
    last = inherit(session, fork.id, parent_id=begin.run_id, attempt=begin.attempt, step=begin.step)
    if last is not None:
        fork.last_step, fork.last_compute, fork.last_reward = last.step, last.compute, last.reward
        mark_dirty(session, fork, now)


def _record(session: Session, fork: Run, parent: Run, actor: str) -> None:
    """In the audit log of both."""
    begin: dict[str, Any] = {"checkpoint": fork.parent_checkpoint_id, "step": fork.parent_step}
    record(session, "run.created", actor=actor, run_id=fork.id, executor=fork.executor, parent=parent.id, **begin)
    record_of(session, parent, "run.forked", actor=actor, fork=fork.id, **begin)
