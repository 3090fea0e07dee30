"""A run that its user launched goes on in another attempt, after a crash or where its machine was taken away.

The service cannot start such a run again; its user does, and asks here for the next attempt. From then on the reports
of the attempts before it are refused, as they are when a launched run is started anew: a process that was thought dead
and was not cannot mix its curve with that of the one in its place.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from forecurve.recipes import Recipe, diff, load_recipe
from server.errors import Conflict, Invalid
from server.recipes.models import RecipeRow
from server.recipes.service import resolve

from .fencing import over
from .history import record_of
from .lifecycle import transition
from .models import Attempt, Run
from .schemas import AttemptCreate
from .service import TOLD, Created, current_attempt, is_over, lock_run, mint_for_attempt
from .states import DesiredState, Status

NEW_RUN = "leave it out, or begin a new run"


def begin_attempt(
    session: Session, run_id: str, body: AttemptCreate, *, actor: str, now: datetime, reports: bool = True
) -> Created:
    """The next attempt of an external run, with a token of its own for its reports; with none where not `reports`.

    Raises:
        NotFound: no such run.
        Over: it is over, or its last attempt has said that it is.
        Conflict: it was launched by the service, or is to stop.
        Invalid: what is given is not what the run has.
    """
    run = lock_run(session, run_id)
    _check_may_go_on(session, run)
    _check_is_same(session, run, body)
    before = current_attempt(session, run)
    before.ended_at = before.ended_at or now
    run.attempt += 1
    run.version += 1  # whoever decided on the attempt before must decide anew
    session.add(Attempt(run_id=run.id, number=run.attempt, created_at=now))
    session.flush()
    record_of(session, run, "run.resumed", actor=actor, attempt=run.attempt)
    if Status(run.status) is Status.LOST:
        transition(session, run, Status.QUEUED, actor=actor, reason="Resumed.", now=now)
    return Created(run, mint_for_attempt(session, run, now) if reports else None)


def _check_may_go_on(session: Session, run: Run) -> None:
    if run.executor != "external":
        message = (
            f"run {run.id} was launched by the service, which begins its attempts; `:resume` goes on after a pause"
        )
        raise Conflict.field("executor", run.executor, message)
    if is_over(run):
        raise over(run)
    attempt = current_attempt(session, run)
    if attempt.outcome not in (None, "lost"):
        raise over(run, f"run {run.id} was ended by its attempt {attempt.number} ({attempt.outcome})")
    if run.desired_state != DesiredState.RUN:
        message = f"run {run.id} is to {run.desired_state}, and that stands; begin a new run to go on"
        raise Conflict.field("desired_state", run.desired_state, message, state=run.status)


def _check_is_same(session: Session, run: Run, body: AttemptCreate) -> None:
    """Whoever names the unit, the budget, the task or the recipe means a run that has them."""
    for field in ("compute_unit", "budget_compute", *TOLD):
        given, has = getattr(body, field), getattr(run, field)
        if given is not None and given != has:
            raise _other(run, field, given, "none" if has is None else str(has))
    recipe = resolve(session, body)
    if recipe is not None:
        _check_recipe(session, run, recipe, body)


def _check_recipe(session: Session, run: Run, recipe: Recipe, body: AttemptCreate) -> None:
    field = next(name for name in ("recipe", "recipe_id", "preset") if getattr(body, name) is not None)
    row = session.get(RecipeRow, run.recipe_id) if run.recipe_id is not None else None
    if row is None:
        raise _other(run, field, recipe.name, "none")
    changed = diff(load_recipe(row.body), recipe)
    if changed:
        path, (has, given) = next(iter(changed.items()))
        raise _other(run, f"{field}.{path}" if field == "recipe" else field, given, f"{path} = {has!r}")


def _other(run: Run, field: str, given: Any, has: str) -> Invalid:
    return Invalid.field(field, given, f"run {run.id} goes on with what it has, {has}; {NEW_RUN}")
