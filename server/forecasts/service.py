"""Writing forecasts down, and reading them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.database import new_id
from server.errors import NotFound
from server.metrics.curve import Point
from server.metrics.repeated import only_repeats
from server.pagination import newest_first
from server.runs.history import record_of
from server.runs.models import Run
from server.runs.service import get_run

from .models import Forecast
from .past_said import is_of
from .recommendations import withdraw_advice


@dataclass(frozen=True)
class Said:
    """A forecast that was just made, before it has a row.

    `summary` is `Fit.to_dict()` with its advice, `band` lists over a grid of compute, `state` what `science.watch`
    needs to judge later points against it (empty when it is not to be the frozen one).
    """

    at_compute: float
    at_step: int
    points: int
    unit: str
    summary: dict[str, Any]
    band: dict[str, list[float]]
    state: dict[str, Any]
    sentence: str
    seconds: float


def record_forecast(session: Session, run: Run, said: Said, *, frozen: bool, newest: bool, now: datetime) -> Forecast:
    """Store a forecast of `run` with its event.

    `newest`: it is what the run's pages show from now on. `frozen`: it is the one that the live run is judged against.
    """
    forecast = Forecast(id=new_id("fct"), run_id=run.id, created_at=now, **vars(said))
    session.add(forecast)
    if newest:
        run.forecast_id = forecast.id
        _record(session, run, "forecast", forecast)
    if frozen:
        run.frozen_forecast_id = forecast.id
        _record(session, run, "forecast.frozen", forecast)
    return forecast


def withdraw_if_gone(session: Session, run: Run, points: Sequence[Point], now: datetime) -> None:
    """Show the newest forecast no more, nor its advice, where it is of no evaluation on the run's curve: an attempt
    from scratch has thrown them all away. One that has only said once more what was known has not. The frozen one stays
    what the run is held against. `run` is locked."""
    if run.forecast_id is None:
        return
    forecast = get_forecast(session, run.forecast_id)
    if is_of(points, forecast.at_compute, forecast.summary.get("last")) or only_repeats(session, run.id):
        return
    run.forecast_id = None
    withdraw_advice(session, run, now)


def get_forecast(session: Session, forecast_id: str) -> Forecast:
    forecast = session.get(Forecast, forecast_id)
    if forecast is None:
        message = "no such forecast; `GET /v1/runs/{id}/forecasts` lists those of a run"
        raise NotFound.field("forecast_id", forecast_id, message)
    return forecast


def list_forecasts(
    session: Session, run_id: str, *, cursor: str | None, limit: int
) -> tuple[Sequence[Forecast], str | None]:
    """One page of a run's forecasts, newest first."""
    run = get_run(session, run_id)
    return newest_first(session, select(Forecast).where(Forecast.run_id == run.id), Forecast.id, cursor, limit)


def _record(session: Session, run: Run, kind: str, forecast: Forecast) -> None:
    record_of(
        session,
        run,
        kind,
        actor="refit",
        reason=forecast.sentence,
        forecast=forecast.id,
        at_compute=forecast.at_compute,
        points=forecast.points,
    )
