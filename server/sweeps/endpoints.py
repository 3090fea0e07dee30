"""HTTP door of the sweeps room."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from server.access.idempotency import IdempotentRoute
from server.dependencies import AppSettings, DbSession, Now, Operator, Reader
from server.filters import TagFilter
from server.pagination import Cursor, Limit, Page
from server.problems import problems
from server.runs.room import Room
from server.runs.schemas import StopRequest

from . import archive, extending, service
from .planning import make_plan
from .schemas import MoreSeeds, NewArm, SweepChange, SweepCreate, SweepPlan, SweepPlanRequest, SweepRead, SweepSummary

router = APIRouter(tags=["sweeps"], route_class=IdempotentRoute)


@router.post("/sweeps:plan", responses=problems(404))
def plan_sweep(body: SweepPlanRequest, session: DbSession, _: Reader, settings: AppSettings) -> SweepPlan:
    """Show what a submission would create: its arms, their differences, what they may spend. Stores nothing."""
    return service.plan_view(body, make_plan(session, body, Room.of(settings)))


@router.post("/sweeps", status_code=201, responses=problems(404, 409))
def create_sweep(
    body: SweepCreate, session: DbSession, identity: Operator, now: Now, settings: AppSettings
) -> SweepRead:
    """Create the sweep and queue its runs, all or nothing."""
    sweep = service.create_sweep(session, body, Room.of(settings), actor=identity.token_id, now=now)
    return service.sweep_read(session, sweep, now)


@router.get("/sweeps")
def list_sweeps(
    session: DbSession,
    _: Reader,
    name: Annotated[str | None, Query(description="Those that are called exactly so.")] = None,
    tag: TagFilter = None,
    archived: Annotated[bool, Query(description="Those that were put away, in place of all others.")] = False,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[SweepSummary]:
    """Sweeps, newest first; those that are archived only when they are asked for."""
    rows, following = service.list_sweeps(
        session, name=name, tags=tag or (), archived=archived, cursor=cursor, limit=limit
    )
    return Page(items=service.sweep_summaries(session, rows), next_cursor=following)


@router.get("/sweeps/{sweep_id:id}", responses=problems(404))
def read_sweep(sweep_id: str, session: DbSession, _: Reader, now: Now) -> SweepRead:
    """One sweep with its runs, control first."""
    return service.sweep_read(session, service.get_sweep(session, sweep_id), now)


@router.patch("/sweeps/{sweep_id:id}", responses=problems(404))
def change_sweep(sweep_id: str, body: SweepChange, session: DbSession, identity: Operator, now: Now) -> SweepRead:
    """Give the sweep another name, policy, shared budget, tags or a note."""
    sweep = service.change_sweep(session, sweep_id, body, actor=identity.token_id, now=now)
    return service.sweep_read(session, sweep, now)


@router.post("/sweeps/{sweep_id:id}/seeds", status_code=201, responses=problems(404, 409))
def add_seeds(
    sweep_id: str, body: MoreSeeds, session: DbSession, identity: Operator, now: Now, settings: AppSettings
) -> SweepRead:
    """Queue further seeds of arms that the sweep has, all or nothing; its comparison counts them with the others."""
    sweep = extending.add_seeds(session, sweep_id, body, Room.of(settings), actor=identity.token_id, now=now)
    return service.sweep_read(session, sweep, now)


@router.post("/sweeps/{sweep_id:id}/arms", status_code=201, responses=problems(404, 409))
def add_arm(
    sweep_id: str, body: NewArm, session: DbSession, identity: Operator, now: Now, settings: AppSettings
) -> SweepRead:
    """Queue an arm that the sweep has not, with every seed that its control has, all or nothing."""
    sweep = extending.add_arm(session, sweep_id, body, Room.of(settings), actor=identity.token_id, now=now)
    return service.sweep_read(session, sweep, now)


@router.post("/sweeps/{sweep_id:id}:archive", responses=problems(404, 409))
def archive_sweep(sweep_id: str, session: DbSession, identity: Operator, now: Now) -> SweepRead:
    """Put a sweep whose runs are over away, and them: out of lists, inbox and counts, and no forecast learns from
    them."""
    sweep = archive.archive_sweep(session, sweep_id, actor=identity.token_id, now=now)
    return service.sweep_read(session, sweep, now)


@router.post("/sweeps/{sweep_id:id}:restore", responses=problems(404))
def restore_sweep(sweep_id: str, session: DbSession, identity: Operator, now: Now) -> SweepRead:
    """Take the sweep out of the archive, with the runs that went there with it."""
    sweep = archive.restore_sweep(session, sweep_id, actor=identity.token_id)
    return service.sweep_read(session, sweep, now)


@router.post("/sweeps/{sweep_id:id}:stop", responses=problems(404))
def stop_sweep(
    sweep_id: str, session: DbSession, identity: Operator, now: Now, body: StopRequest | None = None
) -> SweepRead:
    """Ask every run of the sweep that is not over to stop."""
    reason = body.reason if body else None
    sweep = service.stop_sweep(session, sweep_id, actor=identity.token_id, reason=reason)
    return service.sweep_read(session, sweep, now)
