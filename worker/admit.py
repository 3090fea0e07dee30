"""Giving free places on the cluster to queued runs: oldest first, a sweep's control arm before its other arms."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from server.events.outbox import enqueue
from server.runs.lifecycle import transition
from server.runs.models import Attempt, Run
from server.runs.service import IN_LINE
from server.runs.states import HOLDS_PLACE, DesiredState, Status
from server.settings import Settings
from worker.clocks import is_reached
from worker.decide import LONGEST_RETRY_S
from worker.locks import wait_for_turn
from worker.room import with_room

ACTOR = "admission"
LAUNCH_TASK = "worker.tasks.launch"


def admit(session: Session, settings: Settings, now: datetime) -> list[str]:
    """Move as many queued runs to launching as places are free, each with a new attempt; the attempts' ids.

    One process at a time: two that counted the free places at once would give them away twice. The caller commits.
    """
    wait_for_turn(session, "admit")
    waiting = _next_in_line(session, _free_places(session, settings), now)
    return [_begin_attempt(session, run, now) for run in with_room(session, settings, waiting)]


def _free_places(session: Session, settings: Settings) -> int:
    taken = select(func.count()).where(Run.status.in_(HOLDS_PLACE), Run.executor != "external")
    return max(settings.max_concurrent_runs - (session.scalar(taken) or 0), 0)


def _next_in_line(session: Session, places: int, now: datetime) -> list[Run]:
    if not places:
        return []
    ready = (
        select(Run)
        .where(Run.status == Status.QUEUED, Run.desired_state == DesiredState.RUN, Run.executor != "external")
        .where(is_reached(Run.not_before, now, timedelta(seconds=LONGEST_RETRY_S)))
        .order_by(*IN_LINE)
        .limit(places)
        .with_for_update(key_share=True)
    )
    # after waiting for a row lock Postgres looks at the row again, so a run that was just stopped falls out here
    return list(session.scalars(ready.execution_options(populate_existing=True)))


def _begin_attempt(session: Session, run: Run, now: datetime) -> str:
    run.attempt += 1
    run.not_before = None
    attempt = Attempt(run_id=run.id, number=run.attempt, created_at=now)
    session.add(attempt)
    session.flush()
    transition(session, run, Status.LAUNCHING, actor=ACTOR, reason=None, now=now)
    enqueue(session, LAUNCH_TASK, attempt.id)
    return attempt.id
