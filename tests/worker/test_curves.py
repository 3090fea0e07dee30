"""From evaluations to the curve that is fitted: it rises, and knows where it was resumed."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecurve.science import Curve, fit
from server.forecasts.fitted import curve_of, restarts, rising
from server.metrics.curve import Point
from server.runs.models import Run
from server.settings import Settings
from tests.server.forecasts.seeds import START, add_evaluations
from tests.worker.refitting import (
    COLLAPSING,
    COMPUTE,
    HEALTHY,
    Sessions,
    forecasts,
    start_run,
)
from worker.refit import refit


def test_a_resumed_run_is_fitted_without_the_branch_that_was_thrown_away(
    sessions: Sessions, settings: Settings
) -> None:
    run_id = start_run(sessions, COLLAPSING, points=40, budget_compute=400.0)
    with sessions.begin() as session:
        run = session.get_one(Run, run_id)
        run.attempt = 2
        add_evaluations(session, run, COMPUTE[20:30], HEALTHY[20:30], attempt=2, first_step=200)
    refit(sessions, settings, run_id, START)
    (forecast,) = forecasts(sessions, run_id)
    assert (forecast.points, forecast.at_compute, forecast.summary["misfit"]) == (30, 58.0, None)


def point(step: int, compute: float, attempt: int = 1) -> Point:
    return Point(step, attempt, compute, 0.5, None, None, None, datetime(2026, 1, 1, tzinfo=UTC))


@given(st.lists(st.floats(0, 100), max_size=30))
def test_rising_points_rise_end_with_the_last_and_keep_all_that_rose_already(computes: list[float]) -> None:
    points = [point(step, compute) for step, compute in enumerate(computes)]
    kept = rising(points)
    assert all(a.compute < b.compute and a.step < b.step for a, b in pairwise(kept))
    assert kept[-1:] == points[-1:]
    strictly = sorted(set(computes))
    assert [p.compute for p in rising([point(n, c) for n, c in enumerate(strictly)])] == strictly


def test_a_curve_knows_after_which_evaluation_each_later_attempt_resumed() -> None:
    attempts = [1, 1, 1, 2, 2, 4, 4]
    points = [point(10 * n, 2.0 * n, attempt) for n, attempt in enumerate(attempts)]
    assert restarts(points) == [4.0, 8.0]
    assert curve_of("r", "GPU-hours", points).restarts == (4.0, 8.0)
    assert curve_of("r", "GPU-hours", points[:3]).restarts == ()


def test_a_run_whose_first_attempt_measured_nothing_was_not_resumed() -> None:
    assert restarts([point(10 * n, float(n), attempt=3) for n in range(5)]) == []


def test_a_refit_tells_the_fit_where_the_run_was_resumed(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[Curve] = []
    monkeypatch.setattr("worker.assessment.fit", lambda curve: fitted.append(curve) or fit(curve))
    run_id = start_run(sessions, points=12)
    with sessions.begin() as session:
        run = session.get_one(Run, run_id)
        run.attempt = 2
        add_evaluations(session, run, COMPUTE[12:16], HEALTHY[12:16], attempt=2, first_step=120)
    refit(sessions, settings, run_id, START)
    assert [curve.restarts for curve in fitted] == [(22.0,)]
