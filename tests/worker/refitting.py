"""Runs that are refitted: a curve to grow, and what a refit wrote."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

import worker.refit
from server.forecasts.models import Forecast
from server.runs.models import Run
from server.settings import Settings
from tests.server.forecasts.seeds import START, add_evaluations, make_run, sigmoid
from worker.assessment import Assessment, assess
from worker.refit import refit

Sessions = sessionmaker[Session]

COMPUTE = np.linspace(0.0, 100.0, 51)
HEALTHY = sigmoid(COMPUTE) + np.random.default_rng(7).normal(0.0, 6e-5**0.5, 51)
COLLAPSING = HEALTHY - np.clip(0.02 * (np.arange(51) - 25), 0.0, 0.3)


def start_run(sessions: Sessions, reward: Any = HEALTHY, points: int = 12, **columns: Any) -> str:
    """The id of a dirty run with the first `points` evaluations of a curve."""
    with sessions.begin() as session:
        run = make_run(session, **columns)
        if points:
            add_evaluations(session, run, COMPUTE[:points], reward[:points])
        run.dirty_at = START
        return run.id


def ingest(sessions: Sessions, run_id: str, reward: Any, first: int, last: int, now: datetime = START) -> None:
    """Evaluations number `first` to `last` - 1 arrive; `dirty_at` moves, as the ingest moves it."""
    with sessions.begin() as session:
        run = session.get_one(Run, run_id)
        add_evaluations(session, run, COMPUTE[first:last], reward[first:last], first_step=10 * first)
        run.dirty_at = now + timedelta(microseconds=first)


def run_of(sessions: Sessions, run_id: str) -> Run:
    with sessions() as session:
        return session.get_one(Run, run_id)


def forecasts(sessions: Sessions, run_id: str) -> list[Forecast]:
    with sessions() as session:
        return list(session.scalars(select(Forecast).where(Forecast.run_id == run_id).order_by(Forecast.id)))


def around_assess(monkeypatch: pytest.MonkeyPatch, before: Callable[[], None]) -> None:
    """Do something in the middle of a refit, between its claim and its fit."""

    def assess_after(*args: Any) -> Assessment | None:
        before()
        return assess(*args)

    monkeypatch.setattr(worker.refit, "assess", assess_after)


def end(sessions: Sessions, settings: Settings, run_id: str, now: datetime) -> None:
    """The run succeeds, and is refitted once more."""
    with sessions.begin() as session:
        run = session.get_one(Run, run_id)
        run.status, run.finished_at, run.dirty_at = "succeeded", now, now
    refit(sessions, settings, run_id, now)


def grow(sessions: Sessions, settings: Settings, reward: Any, stops: list[int], **columns: Any) -> str:
    """A run that is refitted each time its curve has grown to so many points."""
    run_id = start_run(sessions, reward, points=stops[0], **columns)
    refit(sessions, settings, run_id, START)
    for number, (before, after) in enumerate(pairwise(stops), start=1):
        now = START + timedelta(minutes=number)
        ingest(sessions, run_id, reward, before, after, now)
        refit(sessions, settings, run_id, now)
    return run_id
