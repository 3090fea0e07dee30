"""HTTP door of the comparisons room."""

from __future__ import annotations

from fastapi import APIRouter

from server.access.idempotency import IdempotentRoute
from server.dependencies import DbSession, Now, Reader
from server.filters import SomeRuns
from server.problems import problems

from . import service
from .schemas import RunsComparison

router = APIRouter(tags=["comparisons"], route_class=IdempotentRoute)


@router.get("/runs:compare", responses=problems(404, 503))
def compare_runs(runs: SomeRuns, session: DbSession, _: Reader, now: Now, control: str | None = None) -> RunsComparison:
    """Hold any runs against one of them, as a sweep's arms against its control: 2 to 20 runs in one unit of compute.

    `control` is one of the runs; without it, the first that is a control, else the first."""
    return service.compare_runs(session, runs, service.control_of(runs, control), now)
