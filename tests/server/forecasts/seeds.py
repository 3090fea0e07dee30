"""Rows that the tests of forecasts, alerts, refit and notify start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from forecurve.science import Past
from server.alerts.models import Channel
from server.database import new_id
from server.events.models import Event, OutboxMessage
from server.forecasts.models import Forecast
from server.forecasts.past_runs import past_runs
from server.forecasts.track_record import past_forecasts
from server.metrics.models import Evaluation
from server.recipes.models import RecipeRow
from server.runs.models import Run
from server.sweeps.models import Sweep

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECRET = "whsec_" + "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0IQ=="


def make_run(session: Session, name: str = "no-cispo", **columns: Any) -> Run:
    """`new_run`, stored."""
    run = new_run(name, **columns)
    session.add(run)
    session.flush()
    return run


def new_run(name: str = "no-cispo", **columns: Any) -> Run:
    """A running run with a budget of 100 GPU-hours, unless `columns` say otherwise."""
    columns = {
        "arm": name,
        "compute_unit": "GPU-hours",
        "budget_compute": 100.0,
        "status": "running",
        "attempt": 1,
    } | columns
    return Run(name=name, changes={}, **columns)


def make_sweep(session: Session, policy: str = "advise", **columns: Any) -> Sweep:
    recipe = RecipeRow(name="scalerl", digest=new_id("sha256"), body={})
    session.add(recipe)
    session.flush()
    columns = {"name": "leave-one-out", "design": {}, "plan_hash": "0"} | columns
    sweep = Sweep(base_recipe_id=recipe.id, policy=policy, **columns)
    session.add(sweep)
    session.flush()
    return sweep


def make_channel(
    session: Session, url: str, kind: str = "webhook", min_level: str = "ALERT", **columns: Any
) -> Channel:
    channel = Channel(name=f"{kind} of the test", kind=kind, url=url, secret=SECRET, min_level=min_level, **columns)
    session.add(channel)
    session.flush()
    return channel


def sigmoid(compute: Any, A: float = 0.78, R0: float = 0.12, C_mid: float = 12.0, B: float = 1.6) -> Any:
    """R(C) of the house's curve."""
    return R0 + (A - R0) / (1 + (C_mid / np.maximum(compute, 1e-12)) ** B)


def add_evaluations(
    session: Session, run: Run, compute: Sequence[float], reward: Sequence[float], **which: Any
) -> None:
    """`new_evaluations`, stored."""
    session.add_all(new_evaluations(run, compute, reward, **which))
    session.flush()


def new_evaluations(
    run: Run,
    compute: Sequence[float],
    reward: Sequence[float],
    *,
    attempt: int = 1,
    first_step: int = 0,
    variance: float | None = 6e-5,
) -> list[Evaluation]:
    """Evaluations every ten steps of a run that has its id, as the ingest would leave them: last_* and dirty_at follow.

    Without a variance nothing is told of how many prompts they are of.
    """
    first = START + timedelta(seconds=first_step)
    run.last_step = first_step + 10 * (len(compute) - 1)
    run.last_compute, run.last_reward = float(compute[-1]), float(reward[-1])
    run.dirty_at = START
    return [
        Evaluation(
            run_id=run.id,
            attempt=attempt,
            step=first_step + 10 * number,
            compute=float(c),
            reward=float(r),
            prompts=None if variance is None else 256,
            samples=None if variance is None else 4,
            variance=variance,
            time=first + timedelta(seconds=number),
        )
        for number, (c, r) in enumerate(zip(compute, reward, strict=True))
    ]


def learned(session: Session, run: Run, *, informed: bool = False, known: bool = False) -> list[Past]:
    """What a forecast of this run would learn from."""
    return past_forecasts(session, run, past_runs(session, run), informed=informed, known=known)


def events(session: Session, run: Run, kind: str) -> list[Event]:
    return list(session.scalars(select(Event).where(Event.run_id == run.id, Event.kind == kind).order_by(Event.id)))


def enqueued(session: Session, task: str) -> list[list[Any]]:
    """Arguments of every message for `task`, oldest first."""
    return list(
        session.scalars(select(OutboxMessage.args).where(OutboxMessage.task == task).order_by(OutboxMessage.id))
    )


def ends_like(band: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """What is foretold of ends: at each compute the mean of the band there and a twentieth before."""
    if not band:
        return {}
    grid = np.asarray(band["compute"], dtype=float)
    names = {"median": "median", "lower": "lower90", "upper": "upper90"}
    before = {name: np.interp(np.log(0.95 * grid), np.log(grid), band[column]) for name, column in names.items()}
    means = {name: (before[name] + band[column]) / 2 for name, column in names.items()}
    return {"compute": band["compute"], **{name: values.tolist() for name, values in means.items()}}


def make_forecast(session: Session, run: Run, at_compute: float = 40.0, **columns: Any) -> Forecast:
    """`new_forecast`, stored as the run's newest."""
    forecast = new_forecast(run, at_compute, **columns)
    session.add(forecast)
    session.flush()
    run.forecast_id = forecast.id
    return forecast


def new_forecast(run: Run, at_compute: float = 40.0, **columns: Any) -> Forecast:
    """A forecast with a band of 80 points, as a refit leaves it, and ends like it."""
    grid = np.geomspace(1.0, 125.0, 80)
    middle = sigmoid(grid)
    offsets = {"median": 0.0, "lower50": -0.01, "upper50": 0.01, "lower90": -0.02, "upper90": 0.02}
    band = {"compute": grid.tolist(), **{name: (middle + shift).tolist() for name, shift in offsets.items()}}
    estimate = {"median": 0.78, "lower": 0.76, "upper": 0.81}
    summary = {
        "A": estimate,
        "B": {"median": 1.6, "lower": 1.2, "upper": 2.1},
        "C_mid": {"median": 12.0, "lower": 10.0, "upper": 15.0},
        "R0": {"median": 0.12, "lower": 0.11, "upper": 0.13},
        "identified": {"A": 0.93, "B": 0.97, "C_mid": 0.98, "R0": 0.9},
        "ceiling_known": True,
        "headroom": {"median": 0.09, "lower": 0.07, "upper": 0.12},
        "prior": None,
        "misfit": None,
        "at_budget": {"compute": 100.0, "curve": estimate, "evaluation": estimate},
        "advice": {"action": "continue", "reason": "60 GPU-hours more are expected to buy +0.05."},
        "ends_ahead": ends_like(columns.get("band", band)),
    }
    values = {
        "at_step": 200,
        "points": 21,
        "unit": run.compute_unit,
        "summary": summary,
        "band": band,
        "state": {},
        "sentence": "Ceiling 0.78 (90 %: 0.76 to 0.81).",
        "seconds": 0.01,
    }
    return Forecast(run_id=run.id, at_compute=at_compute, **(values | columns))
