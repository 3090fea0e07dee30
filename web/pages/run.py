"""One run: the sentence, the curve, the facts behind it, what was advised, what happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from sqlalchemy.orm import Session

from server.alerts.models import Alert
from server.alerts.service import list_alerts
from server.checkpoints.models import Checkpoint
from server.checkpoints.service import list_checkpoints
from server.events.views import names_of_tokens
from server.forecasts.schemas import ForecastView
from server.forecasts.service import get_forecast
from server.metrics.variance import standard_error
from server.runs.forks import list_forks, on_disk
from server.runs.models import Attempt, Run
from server.runs.service import get_run, list_attempts
from server.runs.views import run_view
from server.sweeps.models import Sweep
from server.sweeps.service import get_sweep
from web import reads
from web.page import AnyPage
from web.recipe_fields import parameter_sections, recipe_sections

MOST = 20  # of attempts, checkpoints, forks and alerts
MOST_EVALUATIONS = 200
MOST_EVENTS = 40
MOST_DECISIONS = 10
MOST_PAST = 8  # past runs that are named
router = APIRouter(include_in_schema=False)


@router.get("/runs/{run_id}")
def show_run(page: AnyPage, run_id: str, alert: str | None = None) -> HTMLResponse:
    """`alert` is one to show whether or not it is among the newest."""
    session = page.session
    run = get_run(session, run_id)
    sweep = get_sweep(session, run.sweep_id) if run.sweep_id else None
    forecast = ForecastView.of(get_forecast(session, run.forecast_id)) if run.forecast_id else None
    first: dict[str, Any] = {"cursor": None, "limit": MOST}
    alerts = reads.newest(session, list_alerts(session, run_id=run_id, is_open=None, **first), Alert.run_id == run_id)
    events = reads.events_of(session, run_id, MOST_EVENTS)
    checkpoints = reads.newest(session, list_checkpoints(session, run_id, **first), Checkpoint.run_id == run_id)
    forks = reads.newest(session, list_forks(session, run_id, **first), Run.parent_run_id == run_id)
    points = reads.evaluations_of(session, run_id, MOST_EVALUATIONS)
    return page.render(
        "run.html",
        run=run_view(session, run),
        sweep=sweep,
        parent=get_run(session, run.parent_run_id) if run.parent_run_id else None,
        forks=forks,
        errors=reads.errors_of(session, forks.rows),
        forecast=forecast,
        past=reads.runs_by_id(session, forecast.prior.runs) if forecast and forecast.prior else [],
        most_past=MOST_PAST,
        recommendation=reads.open_recommendation(session, run_id),
        decisions=reads.decisions_of(session, run_id, MOST_DECISIONS),
        alerts=alerts,
        alert_lines=reads.with_deliveries(session, _with(session, alerts.rows, alert, run_id)),
        points=points,
        error=standard_error(points.rows[0]) if points.rows else None,
        checkpoints=checkpoints,
        on_disk=on_disk(session, run) if run.executor == "ray" and run.recipe_id else None,
        attempts=reads.newest(session, list_attempts(session, run_id, **first), Attempt.run_id == run_id),
        events=events,
        actors=names_of_tokens(session, (event.actor for event in events.rows)),
        parameters=parameter_sections(reads.parameters_of(session, run_id)),
        recipe=recipe_sections(reads.recipe_body(session, run.recipe_id), _control(page, sweep)),
    )


def _with(session: Session, newest: Sequence[Alert], asked: str | None, run_id: str) -> list[Alert]:
    """The newest alerts of a run, and after them the one that was asked for where it is older."""
    found = None if asked is None or any(one.id == asked for one in newest) else session.get(Alert, asked)
    return [*newest, found] if found is not None and found.run_id == run_id else list(newest)


def _control(page: AnyPage, sweep: Sweep | None) -> dict[str, Any] | None:
    return reads.recipe_body(page.session, sweep.base_recipe_id) if sweep else None
