"""HTTP door of the forecasts room."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE
from server.access.idempotency import IdempotentRoute
from server.dependencies import DbSession, ForecastPlace, Now, Operator, Reader
from server.filters import AnyRuns, OfRun, OfSweep, SomeRuns
from server.pagination import Cursor, Limit, Page
from server.problems import problems

from . import curves, recommendations, service
from .of_metric import Asked, metric_curve
from .schemas import (
    Acceptance,
    CurveView,
    Dismissal,
    ForecastView,
    MetricCurve,
    RecommendationView,
    RunsCurves,
    SweepCurves,
    TrackRecordView,
)
from .sweep_curves import sweep_curves
from .track_lines import track_view
from .track_record import told

router = APIRouter(tags=["forecasts"], route_class=IdempotentRoute)

WithFrozen = Annotated[bool, Query(description="Without, `frozen` is null: it is half of what a short curve weighs.")]
Status = Literal["open", "accepted", "dismissed", "superseded"]


@router.get("/runs/{run_id:id}/curve", responses=problems(404))
def read_curve(run_id: str, session: DbSession, _: Reader) -> CurveView:
    """All that the chart of a run needs: points, newest and frozen forecast, marks, alerts, advice."""
    return curves.run_curve(session, run_id)


@router.get("/runs/{run_id:id}/metrics:forecast", responses=problems(404))
def read_metric_forecast(
    run_id: str,
    _place: ForecastPlace,
    session: DbSession,
    _: Reader,
    metric: Annotated[str, Query(description="Name of a metric that the run logs.")],
    low: Annotated[float, Query(allow_inf_nan=False, description="The least value that it can have.")] = 0.0,
    high: Annotated[float, Query(allow_inf_nan=False, description="The greatest.")] = 1.0,
    budget: Annotated[
        float | None,
        Query(ge=LEAST_COMPUTE, le=MOST_COMPUTE, description="Compute to forecast it at; else the run's budget."),
    ] = None,
) -> MetricCurve:
    """Any metric as a curve over compute, and its forecast, made now: of another benchmark, say. Nothing is kept of it,
    and no alert rings by it. Comparable runs that logged it too are its past."""
    return metric_curve(session, run_id, Asked(metric, low, high, budget))


@router.get("/runs:curves", responses=problems(404))
def read_curves(runs: SomeRuns, session: DbSession, _: Reader, frozen: WithFrozen = True) -> RunsCurves:
    """The curves of up to 20 runs, in the order asked for."""
    return curves.runs_curves(session, runs, frozen=frozen)


@router.get("/sweeps/{sweep_id:id}/curves", responses=problems(404))
def read_sweep_curves(
    sweep_id: str, runs: AnyRuns, session: DbSession, _: Reader, frozen: WithFrozen = True
) -> SweepCurves:
    """The curves of every run of a sweep of up to 100; of more, those of a few and where the others lie. With `run_id`
    the curves of those runs of it, and where the others lie."""
    return sweep_curves(session, sweep_id, runs, frozen=frozen)


@router.get("/runs/{run_id:id}/forecasts", responses=problems(404))
def list_forecasts(
    run_id: str, session: DbSession, _: Reader, cursor: Cursor = None, limit: Limit = 50
) -> Page[ForecastView]:
    """Every forecast that was made of a run, newest first."""
    rows, following = service.list_forecasts(session, run_id, cursor=cursor, limit=limit)
    return Page(items=[ForecastView.of(row) for row in rows], next_cursor=following)


@router.get("/forecasts/{forecast_id:id}", responses=problems(404))
def read_forecast(forecast_id: str, session: DbSession, _: Reader) -> ForecastView:
    """One forecast, as it was said; it never changes."""
    return ForecastView.of(service.get_forecast(session, forecast_id))


@router.get("/track-record", responses=problems(404))
def read_track_record(
    session: DbSession,
    _: Reader,
    sweep_id: OfSweep,
    runs: Annotated[int, Query(ge=1, le=300, description="Newest finished runs that are looked at.")] = 100,
    limit: Annotated[int, Query(ge=0, le=1000, description="Most forecasts listed; the table counts all.")] = 50,
) -> TrackRecordView:
    """How good the forecasts were: each is scored against the last 10 % of the evaluations of its finished run."""
    return track_view(told(session, sweep_id=sweep_id, runs=runs), limit)


@router.get("/recommendations", responses=problems(404))
def list_recommendations(
    session: DbSession,
    _: Reader,
    run_id: OfRun,
    status: Status | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[RecommendationView]:
    """Recommendations, newest first; those of archived runs only when `run_id` asks for one. A run has at most one
    open one, and one that is over at most one to scale."""
    rows, following = recommendations.list_recommendations(
        session, run_id=run_id, status=status, cursor=cursor, limit=limit
    )
    return Page(items=[RecommendationView.model_validate(row) for row in rows], next_cursor=following)


@router.get("/recommendations/{recommendation_id:id}", responses=problems(404))
def read_recommendation(recommendation_id: str, session: DbSession, _: Reader) -> RecommendationView:
    """One recommendation, and what became of it."""
    return RecommendationView.model_validate(recommendations.get_recommendation(session, recommendation_id))


@router.post("/recommendations/{recommendation_id:id}:accept", responses=problems(404, 409))
def accept_recommendation(
    recommendation_id: str, session: DbSession, identity: Operator, now: Now, body: Acceptance | None = None
) -> RecommendationView:
    """Follow the advice. Accepting `stop` stops the run; the other actions are written down for you to carry out."""
    reason = body.reason if body else None
    advice = recommendations.accept(session, recommendation_id, actor=identity.token_id, reason=reason, now=now)
    return RecommendationView.model_validate(advice)


@router.post("/recommendations/{recommendation_id:id}:dismiss", responses=problems(404, 409))
def dismiss_recommendation(
    recommendation_id: str, body: Dismissal, session: DbSession, identity: Operator, now: Now
) -> RecommendationView:
    """Do not follow the advice, and say why. It comes back only when its numbers have moved, or the run falls."""
    advice = recommendations.dismiss(session, recommendation_id, actor=identity.token_id, reason=body.reason, now=now)
    return RecommendationView.model_validate(advice)
