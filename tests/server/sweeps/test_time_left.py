"""When a sweep will be through: by the pace of what trains, in the places that it has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.metrics.models import Evaluation
from server.runs.models import Run
from server.runs.states import Status
from server.sweeps.models import Sweep
from server.sweeps.time_left import through_at
from tests.server.forecasts.seeds import make_run, make_sweep
from tests.server.reporting import Headers

Sessions = sessionmaker[Session]
BEGAN = datetime(2026, 1, 5, 12, tzinfo=UTC)
NOW = BEGAN + timedelta(minutes=40)


def training(session: Session, sweep: Sweep, minutes_a_tenth: float, **columns: object) -> Run:
    """A run that has spent 40 of 100 by now, or as much as it could."""
    run = make_run(session, sweep_id=sweep.id, started_at=BEGAN, **columns)
    for step in range(5):
        at = BEGAN + timedelta(minutes=minutes_a_tenth * step)
        session.add(Evaluation(run_id=run.id, attempt=1, step=step, compute=10.0 * step, reward=0.5, time=at))
    session.flush()
    return run


def minutes(session: Session, sweep: Sweep, now: datetime = NOW) -> float | None:
    """From the beginning on."""
    session.flush()
    found = through_at(session, sweep, now)
    return None if found is None else (found - BEGAN).total_seconds() / 60


def test_runs_that_wait_take_the_places_of_those_that_end(session: Session) -> None:
    sweep = make_sweep(session)
    training(session, sweep, 10)  # until 100
    assert minutes(session, sweep) == pytest.approx(100)
    training(session, sweep, 10)
    for _ in range(3):  # two at 100, which take until 200, then one
        make_run(session, sweep_id=sweep.id, status="queued", attempt=0)
    assert minutes(session, sweep) == pytest.approx(300)
    make_run(session, sweep_id=sweep.id, status="queued", attempt=0, budget_compute=50.0)  # beside the third
    assert minutes(session, sweep) == pytest.approx(300)


def test_what_was_launched_just_now_takes_as_long_as_the_others(session: Session) -> None:
    sweep = make_sweep(session)
    training(session, sweep, 10)
    make_run(session, sweep_id=sweep.id, status="launching", started_at=None)
    assert minutes(session, sweep) == pytest.approx(140)


def test_runs_that_are_through_tell_how_long_one_takes(session: Session) -> None:
    sweep = make_sweep(session)
    ended = BEGAN + timedelta(minutes=20)
    make_run(session, sweep_id=sweep.id, status="succeeded", started_at=BEGAN, finished_at=ended)
    make_run(session, sweep_id=sweep.id, status="launching", started_at=None)
    assert minutes(session, sweep) == pytest.approx(60)


def test_a_run_that_should_have_ended_by_now_ends_any_moment(session: Session) -> None:
    sweep = make_sweep(session)
    training(session, sweep, 10)
    assert minutes(session, sweep, now=BEGAN + timedelta(minutes=130)) == pytest.approx(130)


@pytest.mark.parametrize("status", ["queued", "paused", "failed", "succeeded"])
def test_where_nothing_trains_nothing_is_said(session: Session, status: str) -> None:
    sweep = make_sweep(session)
    over = {"finished_at": NOW} if status in ("failed", "succeeded") else {}
    make_run(session, sweep_id=sweep.id, status=status, started_at=BEGAN, **over)
    assert minutes(session, sweep) is None
    make_run(session, sweep_id=sweep.id, status="launching", started_at=None, budget_compute=None)
    if status != "succeeded":  # which tells how long one takes
        assert minutes(session, sweep) is None


def test_it_is_in_the_api(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    with sessions.begin() as session:
        sweep = make_sweep(session)
        run = training(session, sweep, 10)
    said = api.get(f"/v1/sweeps/{sweep.id}", headers=headers["read"]).json()
    assert said["through_at"] is not None
    with sessions.begin() as session:
        session.get_one(Run, run.id).status = Status.STOPPED
    assert api.get(f"/v1/sweeps/{sweep.id}", headers=headers["read"]).json()["through_at"] is None


def test_what_is_to_end_anyhow_takes_no_whole_budget_more(session: Session) -> None:
    sweep = make_sweep(session)
    training(session, sweep, 10)
    for status in ("stopping", "pausing"):
        make_run(session, sweep_id=sweep.id, status=status, started_at=BEGAN)
    make_run(session, sweep_id=sweep.id, status="queued", attempt=0, desired_state="stop")
    assert minutes(session, sweep) == pytest.approx(100)


def test_a_run_that_is_silent_or_has_said_little_has_trained_since_it_began(session: Session) -> None:
    sweep = make_sweep(session)
    training(session, sweep, 10)
    for status in ("suspect", "running"):
        make_run(session, sweep_id=sweep.id, status=status, started_at=BEGAN + timedelta(minutes=20))
    assert minutes(session, sweep) == pytest.approx(120)
    make_run(session, sweep_id=sweep.id, status="running", attempt=2, started_at=BEGAN)  # how far it was is not known
    assert minutes(session, sweep) == pytest.approx(140)


def test_nothing_is_said_of_what_would_take_many_years(session: Session) -> None:
    sweep = make_sweep(session)
    training(session, sweep, 60 * 24 * 300)
    make_run(session, sweep_id=sweep.id, status="queued", attempt=0, budget_compute=1e9)
    assert minutes(session, sweep) is None
    for budget in (1e300, 100.0):
        make_run(session, sweep_id=sweep.id, status="queued", attempt=0, budget_compute=budget)
    assert minutes(session, sweep) is None


def test_what_a_run_has_waited_in_a_pause_counts_for_no_other(session: Session) -> None:
    sweep = make_sweep(session)
    paused = training(session, sweep, 10, last_compute=40.0)
    make_run(session, sweep_id=sweep.id, status="queued", attempt=0)
    assert minutes(session, sweep) == pytest.approx(200)
    paused.attempt, paused.started_at = 2, BEGAN - timedelta(days=3)
    for evaluation in session.scalars(select(Evaluation)):
        evaluation.attempt = 2
    assert minutes(session, sweep) == pytest.approx(200)
