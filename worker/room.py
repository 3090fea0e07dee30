"""Which runs find room beside those that are at work, as far as it is known what the cluster has.

A trainer waits for its room by itself (docs/decisions/0041), but a process that only waits takes memory of the head.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from server.recipes.models import RecipeRow
from server.runs.models import Run
from server.runs.room import Room
from server.runs.states import HOLDS_PLACE
from server.settings import Settings


def with_room(session: Session, settings: Settings, waiting: Sequence[Run]) -> list[Run]:
    """Those of `waiting` that fit, up to the first that does not: runs behind it would keep it out for ever. Where
    nothing is at work the first goes in any case, and tells what it lacks."""
    room = Room.of(settings)
    if not room.known or not waiting:
        return list(waiting)
    needs = _needs(session, [run.id for run in waiting])
    at_work = needs.keys() - set(waiting)
    taken = {name: sum(needs[run].get(name, 0.0) for run in at_work) for name in room.known}
    chosen: list[Run] = []
    for run in waiting:
        taken = {name: amount + needs[run].get(name, 0.0) for name, amount in taken.items()}
        if (at_work or chosen) and not room.holds(taken):
            break
        chosen.append(run)
    return chosen


def _needs(session: Session, waiting: Sequence[str]) -> dict[Run, dict[str, float]]:
    """What each run takes, of those at work and those waiting; one without a recipe nothing."""
    ours = or_(Run.status.in_(HOLDS_PLACE), Run.id.in_(waiting)), Run.executor != "external"
    found = select(Run, RecipeRow.body["resources"]).outerjoin(RecipeRow, Run.recipe_id == RecipeRow.id).where(*ours)
    return {run: dict(resources or {}) for run, resources in session.execute(found)}
