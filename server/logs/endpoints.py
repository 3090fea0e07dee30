"""HTTP door of the logs room."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from server.dependencies import DbSession, Now, Reader
from server.problems import problems

from . import service
from .schemas import LogRead

router = APIRouter(tags=["runs"])

MOST_LINES = 5_000
_MOST_NUMBER = 2**31 - 1


@router.get("/runs/{run_id:id}/logs", responses=problems(404))
def read_log(
    run_id: str,
    session: DbSession,
    _: Reader,
    now: Now,
    attempt: Annotated[int | None, Query(ge=1, le=_MOST_NUMBER, description="The newest where left out.")] = None,
    after: Annotated[
        int | None, Query(ge=0, le=_MOST_NUMBER, description="The number of the first line; the last lines else.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_LINES, description="Most lines of one answer.")] = 1000,
) -> LogRead:
    """What the run's job printed: the last lines, or those from `after` on. Read from the cluster every few seconds
    while somebody looks; the last 5,000 lines are kept, or 400,000 characters."""
    return service.read_log(session, run_id, attempt, after=after, limit=limit, now=now)
