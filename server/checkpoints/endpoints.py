"""HTTP door of the checkpoints room."""

from __future__ import annotations

from fastapi import APIRouter

from server.access.idempotency import IdempotentRoute
from server.dependencies import Caller, DbSession, Now, Reader, require_run
from server.pagination import Cursor, Limit, Page
from server.problems import problems
from server.runs.forks import kept_ids
from server.runs.service import get_run

from . import service
from .models import Checkpoint
from .schemas import CheckpointCreate, CheckpointListed, CheckpointRead

router = APIRouter(tags=["checkpoints"], route_class=IdempotentRoute)


@router.post("/runs/{run_id:id}/checkpoints", status_code=201, responses=problems(404, 409))
def report_checkpoint(
    run_id: str, body: CheckpointCreate, session: DbSession, identity: Caller, now: Now
) -> CheckpointRead:
    """Say that a checkpoint is whole, from where the run can go on."""
    get_run(session, run_id)
    require_run(identity, run_id, body.reporter)
    return CheckpointRead.model_validate(service.add_checkpoint(session, run_id, body, now=now))


@router.get("/runs/{run_id:id}/checkpoints", responses=problems(404))
def list_checkpoints(
    run_id: str, session: DbSession, _: Reader, cursor: Cursor = None, limit: Limit = 50
) -> Page[CheckpointListed]:
    """Checkpoints of the run, newest first; those that its trainer has dropped since, too."""
    rows, following = service.list_checkpoints(session, run_id, cursor=cursor, limit=limit)
    there = kept_ids(session, get_run(session, run_id))
    return Page(items=[_listed(row, there) for row in rows], next_cursor=following)


def _listed(row: Checkpoint, there: frozenset[str] | None) -> CheckpointListed:
    on_disk = None if there is None else row.id in there
    return CheckpointListed(**CheckpointRead.model_validate(row).model_dump(), on_disk=on_disk)
