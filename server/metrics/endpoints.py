"""HTTP door of the metrics room: trainers send, people read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from forecurve.limits import MAX_STEP
from server.access.idempotency import IdempotentRoute
from server.dependencies import Caller, DbSession, Now, Operator, Reader, require_run
from server.filters import SomeRuns
from server.problems import problems
from server.runs.service import get_run
from server.runs.views import run_view

from . import past, service
from .curve import Point, validation_curve
from .ingest import take_batch
from .overview import metrics_of_runs, thinned
from .schemas import (
    Batch,
    BatchAnswer,
    EvaluationRead,
    EvaluationsRead,
    MetricNames,
    MetricSeries,
    PointRead,
    RunImport,
    RunImported,
    RunsMetrics,
    ThinnedMetrics,
)
from .variance import standard_error

MOST_POINTS = 10_000

router = APIRouter(tags=["metrics"], route_class=IdempotentRoute)


@router.post(
    "/runs:import",
    status_code=201,
    responses={200: {"model": RunImported, "description": "The run is there already"}, **problems(413)},
)
def import_run(body: RunImport, response: Response, session: DbSession, identity: Operator, now: Now) -> RunImported:
    """Take a run that is over elsewhere, with its whole curve; 200 when the very same one is there already, or one that
    came in with the first of its evaluations: it gets the others."""
    found = past.import_run(session, body, actor=identity.token_id, now=now)
    if found.was_there:
        response.status_code = 200
    return RunImported(**dict(run_view(session, found.run)), was_there=found.was_there, added=found.added)


@router.post("/runs/{run_id:id}/metrics", responses=problems(404, 409, 413))
def ingest(run_id: str, body: Batch, session: DbSession, identity: Caller, now: Now) -> BatchAnswer:
    """Take a numbered batch, whole or not at all. Send it again until it is answered; it counts once."""
    get_run(session, run_id)
    require_run(identity, run_id, body.reporter)
    return take_batch(session, run_id, body, now=now)


@router.get("/runs/{run_id:id}/metrics", responses=problems(404))
def read_metrics(
    run_id: str,
    session: DbSession,
    _: Reader,
    metric: Annotated[str | None, Query(description="Name of one metric; without it, the names.")] = None,
    since_step: Annotated[int, Query(ge=0, le=MAX_STEP, description="The first step wanted.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_POINTS, description="Most points; `next_step` goes on.")] = MOST_POINTS,
) -> MetricNames | MetricSeries:
    """The names of the run's metrics, or the points of one: each step once, from the newest attempt."""
    get_run(session, run_id)
    if metric is None:
        return MetricNames(metrics=service.metric_names(session, run_id))
    rows, next_step = service.metric_points(session, run_id, metric, since_step=since_step, limit=limit)
    points = [
        PointRead(step=row.step, attempt=row.attempt, compute=row.compute, value=row.value, time=row.time)
        for row in rows
    ]
    return MetricSeries(metric=metric, points=points, next_step=next_step)


@router.get("/runs/{run_id:id}/metrics:thinned", responses=problems(404))
def read_thinned_metrics(
    run_id: str,
    session: DbSession,
    _: Reader,
    metric: Annotated[
        list[str] | None, Query(max_length=50, description="Names of metrics; given several times.")
    ] = None,
    buckets: Annotated[int, Query(ge=1, le=2000, description="Most points a series.")] = 300,
) -> ThinnedMetrics:
    """Whole series for drawing: each in so many buckets at most, with mean, least and greatest value."""
    run = get_run(session, run_id)
    return ThinnedMetrics(unit=run.compute_unit, items=thinned(session, run_id, metric or (), buckets))


@router.get("/runs:metrics", responses=problems(404))
def read_metrics_of_runs(
    runs: SomeRuns,
    session: DbSession,
    _: Reader,
    metric: Annotated[
        list[str] | None, Query(max_length=100, description="Names of metrics; given several times.")
    ] = None,
    buckets: Annotated[int, Query(ge=1, le=300, description="Most points a series.")] = 60,
) -> RunsMetrics:
    """The names of the metrics of up to 20 runs, and whole series of those asked for, to draw over one another."""
    return metrics_of_runs(session, runs, metric or (), buckets)


@router.get("/runs/{run_id:id}/evaluations", responses=problems(404))
def read_evaluations(run_id: str, session: DbSession, _: Reader) -> EvaluationsRead:
    """The validation curve: each step once, from the newest attempt."""
    run = get_run(session, run_id)
    curve = validation_curve(session, run_id, details=True)
    return EvaluationsRead(unit=run.compute_unit, items=[_read(evaluation) for evaluation in curve])


def _read(evaluation: Point) -> EvaluationRead:
    return EvaluationRead(
        step=evaluation.step,
        attempt=evaluation.attempt,
        compute=evaluation.compute,
        reward=evaluation.reward,
        prompts=evaluation.prompts,
        samples=evaluation.samples,
        se=standard_error(evaluation),
        details=evaluation.details,
        time=evaluation.time,
    )
