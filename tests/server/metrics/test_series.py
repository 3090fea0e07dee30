"""A metric as a curve over compute: each step once, averaged where there are many, with the compute that it took."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from sqlalchemy import insert
from sqlalchemy.orm import Session, sessionmaker

from server.metrics.models import MetricPoint
from server.metrics.series import Series, series_of
from server.runs.models import Run
from tests.server.forecasts.seeds import add_evaluations, make_run

NOW = datetime(2026, 11, 28, tzinfo=UTC)


@pytest.fixture
def run(session: Session) -> Run:
    return make_run(session)


def log(session: Session, run: Run, values: dict[int, float], attempt: int = 1, spent: float | None = 0.5) -> None:
    """Values of `eval/other` by step; a step takes `spent`, where that is told."""
    row = {"run_id": run.id, "metric": "eval/other", "attempt": attempt, "time": NOW}
    rows = [row | {"step": step, "compute": spent and spent * step, "value": value} for step, value in values.items()]
    session.execute(insert(MetricPoint), rows)


def read(session: Session, run: Run, most: int = 100) -> Series:
    return series_of(session, [run.id], "eval/other", most)[run.id]


def test_each_step_counts_once_by_the_newest_attempt_to_make_it(session: Session, run: Run) -> None:
    log(session, run, {0: 0.1, 10: 0.2, 20: 0.3, 30: 0.4})
    log(session, run, {20: 0.25, 30: 0.35}, attempt=2)
    found = read(session, run)
    assert [(p.step, p.attempt, p.compute, p.reward) for p in found.points] == [
        (0, 1, 0.0, 0.1),
        (10, 1, 5.0, 0.2),
        (20, 2, 10.0, 0.25),
        (30, 2, 15.0, 0.35),
    ]
    assert (found.logged, found.least, found.greatest, found.lost) == (4, 0.1, 0.35, 0)


def test_many_are_averaged_with_their_compute_and_what_is_not_finite_is_left_out(session: Session, run: Run) -> None:
    log(session, run, {step: float(step) for step in range(9)} | {9: math.nan, 10: math.inf})
    found = read(session, run, most=3)
    assert [(p.step, p.compute, p.reward) for p in found.points] == [(1, 0.5, 1.0), (4, 2.0, 4.0), (7, 3.5, 7.0)]
    assert found.is_thinned
    assert (found.logged, found.least, found.greatest) == (9, 0.0, 8.0)


def test_the_largest_numbers_are_read(session: Session, run: Run) -> None:
    log(session, run, dict.fromkeys(range(4), 1.7e308))
    found = read(session, run, most=2)
    assert (found.greatest, [p.reward for p in found.points]) == (1.7e308, [1.7e308, 1.7e308])


def test_compute_that_was_not_logged_is_read_between_the_evaluations(session: Session, run: Run) -> None:
    add_evaluations(session, run, [2.0, 4.0], [0.1, 0.2], first_step=20)
    log(session, run, {0: 0.0, 10: 0.1, 25: 0.3, 30: 0.4, 50: 0.5}, spent=None)
    found = read(session, run)
    assert [(p.step, p.compute) for p in found.points] == [(0, 0.0), (10, 1.0), (25, 3.0), (30, 4.0)]
    assert (found.logged, found.lost) == (5, 1)  # nobody says yet what step 50 took


def test_where_nobody_says_how_much_compute_was_spent_no_point_is_left(session: Session, run: Run) -> None:
    log(session, run, {0: 0.0, 10: 0.1}, spent=None)
    found = read(session, run)
    assert (found.points, found.logged, found.lost) == ([], 2, 2)


def test_a_run_that_logged_nothing_has_an_empty_series(sessions: sessionmaker[Session]) -> None:
    with sessions.begin() as session:
        one, other = make_run(session), make_run(session)
        log(session, one, {0: 0.5})
        found = series_of(session, [one.id, other.id], "eval/other", 10)
    assert [len(found[run.id].points) for run in (one, other)] == [1, 0]
    assert found[other.id] == Series()


@pytest.mark.parametrize("value", [-0.1, 0.1, 0.7])
@pytest.mark.parametrize("count", [7, 400, 1200])
def test_means_of_what_is_the_same_are_the_same(session: Session, run: Run, value: float, count: int) -> None:
    log(session, run, dict.fromkeys(range(count), value))
    assert {point.reward for point in read(session, run, most=5).points} == {value}


def test_what_has_no_compute_yet_is_told_apart_before_neighbours_are_averaged(session: Session, run: Run) -> None:
    add_evaluations(session, run, [2.0, 4.0], [0.1, 0.2], first_step=20)
    log(session, run, {step: 0.001 * step for step in range(4000)}, spent=None)
    found = read(session, run, most=100)
    assert [point.step for point in found.points] == list(range(31))
    assert (found.logged, found.lost, found.greatest, found.is_thinned) == (4000, 3969, 0.03, False)


def test_an_attempt_ends_where_the_evaluations_of_a_later_one_begin(session: Session, run: Run) -> None:
    """That has not logged the metric yet: what it threw away is known by its evaluations."""
    log(session, run, {step: 0.01 * step for step in range(0, 100, 10)})
    add_evaluations(session, run, [20.0, 21.0], [0.1, 0.2], attempt=2, first_step=42)
    assert [point.step for point in read(session, run).points] == [0, 10, 20, 30]  # step 40 took 20 of compute
    log(session, run, {50: 0.9}, attempt=2)
    assert [(point.step, point.attempt) for point in read(session, run).points[-2:]] == [(30, 1), (50, 2)]


def test_values_whose_compute_is_logged_are_not_averaged_with_those_of_which_nobody_says_it(
    session: Session, run: Run
) -> None:
    add_evaluations(session, run, [10.0, 15.0], [0.1, 0.2], first_step=20)
    log(session, run, {step: 0.001 * step for step in range(1000) if step % 2 or step > 29})
    log(session, run, {step: 0.001 * step for step in range(0, 30, 2)}, spent=None)
    found = read(session, run, most=10)
    assert (found.logged, found.lost, found.greatest) == (1000, 0, 0.999)
    assert [point.step for point in found.points] == sorted(point.step for point in found.points)
    assert found.points[-1].compute == pytest.approx(0.5 * found.points[-1].step, abs=0.3)
