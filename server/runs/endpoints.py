"""HTTP door of the runs room, for people."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from server.access.idempotency import IdempotentRoute
from server.dependencies import AppSettings, DbSession, Now, Operator, Reader
from server.events.schemas import EventRead
from server.events.service import list_run_events
from server.events.views import event_views
from server.filters import OfSweep, TagFilter
from server.pagination import Cursor, Limit, Page
from server.problems import problems

from . import archive, forks, going_on, pausing, service
from .room import Room
from .schemas import (
    AttemptCreate,
    AttemptRead,
    ForkCreate,
    RunChange,
    RunCounts,
    RunCreate,
    RunCreated,
    RunView,
    StopRequest,
)
from .states import Status
from .views import run_view, run_views

router = APIRouter(tags=["runs"], route_class=IdempotentRoute)


@router.post("/runs", status_code=201, responses=problems(404, 413))
def create_run(body: RunCreate, session: DbSession, identity: Operator, now: Now, settings: AppSettings) -> RunCreated:
    """Queue a run, or (executor `external`) have one tracked that you launch; its ingest token is shown this once."""
    created = service.create_run(session, body, Room.of(settings), actor=identity.token_id, now=now)
    view = run_view(session, created.run)
    return RunCreated(**dict(view), ingest_token=created.ingest_token)


@router.get("/runs", responses=problems(404))
def list_runs(
    session: DbSession,
    _: Reader,
    sweep_id: OfSweep,
    status: Annotated[
        list[str] | None,
        Query(description="May be given several times.", json_schema_extra={"items": {"enum": list(Status)}}),
    ] = None,
    arm: str | None = None,
    name: Annotated[str | None, Query(description="Those that are called exactly so.")] = None,
    task: Annotated[str | None, Query(description="Those without a recipe that named this task.")] = None,
    tag: TagFilter = None,
    archived: Annotated[bool, Query(description="Those that were put away, in place of all others.")] = False,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[RunView]:
    """Runs, newest first; those that are archived only when they are asked for."""
    rows, following = service.list_runs(
        session,
        statuses=status or (),
        sweep_id=sweep_id,
        arm=arm,
        name=name,
        task=task,
        tags=tag or (),
        archived=archived,
        cursor=cursor,
        limit=limit,
    )
    return Page(items=run_views(session, rows), next_cursor=following)


@router.get("/runs:count")
def count_runs(session: DbSession, _: Reader) -> RunCounts:
    """How many runs have each status."""
    return RunCounts(statuses=service.count_runs(session))


@router.get("/runs/{run_id:id}", responses=problems(404))
def read_run(run_id: str, session: DbSession, _: Reader) -> RunView:
    """One run, with its newest evaluation and what its newest forecast says."""
    return run_view(session, service.get_run(session, run_id))


@router.patch("/runs/{run_id:id}", responses=problems(404, 409))
def change_run(run_id: str, body: RunChange, session: DbSession, identity: Operator, now: Now) -> RunView:
    """Give the run another name, tags or a note, or say that it is of another task, where no recipe says it."""
    return run_view(session, archive.change(session, run_id, body, actor=identity.token_id, now=now))


@router.post("/runs/{run_id:id}:archive", responses=problems(404, 409))
def archive_run(run_id: str, session: DbSession, identity: Operator, now: Now) -> RunView:
    """Put a run that is over away: out of lists, inbox and counts, and no forecast learns from it."""
    return run_view(session, archive.archive(session, run_id, actor=identity.token_id, now=now))


@router.post("/runs/{run_id:id}:restore", responses=problems(404))
def restore_run(run_id: str, session: DbSession, identity: Operator) -> RunView:
    """Take the run out of the archive."""
    return run_view(session, archive.restore(session, run_id, actor=identity.token_id))


@router.post("/runs/{run_id:id}:stop", responses=problems(404, 409))
def stop_run(run_id: str, session: DbSession, identity: Operator, body: StopRequest | None = None) -> RunView:
    """Ask the run to finish its step, evaluate, write a checkpoint and end; it is made to after a grace."""
    run = service.get_run(session, run_id)
    reason = body.reason if body else None
    return run_view(session, service.request_stop(session, run, actor=identity.token_id, reason=reason))


@router.post("/runs/{run_id:id}:cancel", responses=problems(404, 409))
def cancel_run(run_id: str, session: DbSession, identity: Operator, body: StopRequest | None = None) -> RunView:
    """End the run at once, without waiting for a checkpoint."""
    run = service.get_run(session, run_id)
    reason = body.reason if body else None
    return run_view(session, service.request_cancel(session, run, actor=identity.token_id, reason=reason))


@router.post("/runs/{run_id:id}:pause", responses=problems(404, 409))
def pause_run(
    run_id: str, session: DbSession, identity: Operator, now: Now, body: StopRequest | None = None
) -> RunView:
    """Ask the run to end as for a stop, and to give its place away until it is resumed. Only runs launched here."""
    reason = body.reason if body else None
    return run_view(session, pausing.pause_run(session, run_id, actor=identity.token_id, reason=reason, now=now))


@router.post("/runs/{run_id:id}:resume", responses=problems(404, 409))
def resume_run(run_id: str, session: DbSession, identity: Operator, now: Now) -> RunView:
    """Queue a paused run: its next attempt goes on from its newest checkpoint."""
    return run_view(session, pausing.resume_run(session, run_id, actor=identity.token_id, now=now))


@router.post("/runs/{run_id:id}/forks", status_code=201, responses=problems(404, 409))
def fork_run(
    run_id: str,
    session: DbSession,
    identity: Operator,
    now: Now,
    settings: AppSettings,
    body: ForkCreate | None = None,
) -> RunView:
    """Queue a run that goes on from a checkpoint of this one, with another recipe if you like."""
    asked, room = body or ForkCreate(), Room.of(settings)
    return run_view(session, forks.fork_run(session, run_id, asked, room, actor=identity.token_id, now=now))


@router.get("/runs/{run_id:id}/forks", responses=problems(404))
def list_forks(run_id: str, session: DbSession, _: Reader, cursor: Cursor = None, limit: Limit = 50) -> Page[RunView]:
    """Runs that began at a checkpoint of this one, newest first."""
    rows, following = forks.list_forks(session, run_id, cursor=cursor, limit=limit)
    return Page(items=run_views(session, rows), next_cursor=following)


@router.get("/runs/{run_id:id}/attempts", responses=problems(404))
def list_attempts(
    run_id: str, session: DbSession, _: Reader, cursor: Cursor = None, limit: Limit = 50
) -> Page[AttemptRead]:
    """Launches of the run, newest first."""
    rows, following = service.list_attempts(session, run_id, cursor=cursor, limit=limit)
    return Page(items=[AttemptRead.model_validate(row) for row in rows], next_cursor=following)


@router.post("/runs/{run_id:id}/attempts", status_code=201, responses=problems(404, 409))
def begin_attempt(
    run_id: str, session: DbSession, identity: Operator, now: Now, body: AttemptCreate | None = None
) -> RunCreated:
    """Go on with a run that you launched: its next attempt, with an ingest token, which supersedes those before it."""
    begun = going_on.begin_attempt(session, run_id, body or AttemptCreate(), actor=identity.token_id, now=now)
    return RunCreated(**dict(run_view(session, begun.run)), ingest_token=begun.ingest_token)


@router.get("/runs/{run_id:id}/events", responses=problems(404))
def list_events(
    run_id: str, session: DbSession, _: Reader, cursor: Cursor = None, limit: Limit = 50
) -> Page[EventRead]:
    """The run's audit log, newest first."""
    service.get_run(session, run_id)
    rows, following = list_run_events(session, run_id, cursor=cursor, limit=limit)
    return Page(items=event_views(session, rows), next_cursor=following)
