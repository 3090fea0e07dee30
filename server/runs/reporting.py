"""HTTP door of the runs room, for trainers: the recipe to train, heartbeats, the outcome."""

from __future__ import annotations

from fastapi import APIRouter

from server.access.idempotency import IdempotentRoute
from server.dependencies import AppSettings, Caller, DbSession, Now, require_run
from server.errors import Forbidden
from server.problems import problems

from . import reports, service
from .schemas import AttemptRead, Heartbeat, HeartbeatAnswer, Outcome, RunRecipe

router = APIRouter(tags=["reports"], route_class=IdempotentRoute)


@router.get("/runs/{run_id:id}/recipe", responses=problems(404))
def read_run_recipe(run_id: str, session: DbSession, identity: Caller) -> RunRecipe:
    """The run's resolved recipe. For people with scope `read`, and for the run's own ingest token."""
    run = service.get_run(session, run_id)
    if "read" not in identity.allowed and identity.run_id != run_id:
        raise Forbidden(f"This needs scope `read` or the ingest token of run {run_id}.")
    row = service.recipe_of(session, run)
    return RunRecipe(recipe=row.body, digest=row.digest)


@router.post("/runs/{run_id:id}/heartbeat", responses=problems(404))
def beat(
    run_id: str, body: Heartbeat, session: DbSession, identity: Caller, settings: AppSettings, now: Now
) -> HeartbeatAnswer:
    """A sign of life; the answer says whether to stop, and when to beat again."""
    service.get_run(session, run_id)
    require_run(identity, run_id, body.attempt)
    return reports.heartbeat(session, run_id, body, interval_s=settings.heartbeat_interval_s, now=now)


@router.post("/runs/{run_id:id}/outcome", responses=problems(404, 409))
def report_outcome(run_id: str, body: Outcome, session: DbSession, identity: Caller, now: Now) -> AttemptRead:
    """How the attempt ended. The run becomes terminal when the reconciler has seen it."""
    service.get_run(session, run_id)
    require_run(identity, run_id, body.reporter)
    return AttemptRead.model_validate(reports.take_outcome(session, run_id, body, now=now))
