"""When a run's budget is spent, at the pace of its newest evaluations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from server.runs.models import Run
from tests.conftest import Clock
from tests.server.reporting import Headers, Reporter, evaluation, external_run

BEGAN = datetime(2026, 1, 5, 12, tzinfo=UTC)


def running(api: TestClient, headers: Headers, *points: tuple[float, float], **body: Any) -> Reporter:
    """A run with evaluations: compute, and seconds since it began."""
    run = external_run(api, headers, **{"budget_compute": 100.0, **body})
    for seq, (compute, seconds) in enumerate(points, start=1):
        at = (BEGAN + timedelta(seconds=seconds)).isoformat()
        assert run.send(seq, evaluation(seq, compute, time=at)).status_code < 300
    return run


def spent_at(api: TestClient, headers: Headers, run: Reporter) -> float | None:
    """Seconds since it began."""
    said = api.get(f"/v1/runs/{run.run_id}", headers=headers["read"]).json()["budget_spent_at"]
    return None if said is None else (datetime.fromisoformat(said) - BEGAN).total_seconds()


def test_a_budget_is_spent_when_the_pace_of_late_has_brought_it_there(api: TestClient, headers: Headers) -> None:
    slow_first = [(at, 100.0 * at) for at in range(5)]  # a unit in 100 s
    fast_later = [(4.0 + 2 * at, 400.0 + 10 * at) for at in range(1, 7)]  # two in 10 s
    run = running(api, headers, *slow_first, *fast_later)
    assert spent_at(api, headers, run) == pytest.approx(460 + (100 - 16) * 5)


def test_a_heartbeat_that_is_further_tells_how_far_it_is(api: TestClient, headers: Headers, clock: Clock) -> None:
    run = running(api, headers, *((10.0 * at, 60.0 * at) for at in range(4)))
    clock.now = BEGAN + timedelta(seconds=230)
    assert run.beat(compute=40.0).status_code == 200
    assert spent_at(api, headers, run) == pytest.approx(230 + 60 * 6)


@pytest.mark.parametrize(
    "points",
    [
        [(0.0, 0.0), (1.0, 10.0)],  # too few
        [(0.0, 0.0), (1.0, 0.004), (2.0, 0.008), (3.0, 0.013)],  # reported at once, by a follower
        [(0.0, 0.0), (1.0, 0.004), (2.0, 0.008), (3.0, 60.0)],  # and one that came since
        [(0.0, 0.0), (1e-20, 1e6), (2e-20, 2e6)],  # for ever
    ],
)
def test_where_no_pace_can_be_told_nothing_is_said(
    api: TestClient, headers: Headers, points: list[tuple[float, float]]
) -> None:
    assert spent_at(api, headers, running(api, headers, *points)) is None


def test_only_of_a_run_that_goes_on_to_a_budget(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session]
) -> None:
    points = [(10.0 * at, 60.0 * at) for at in range(4)]
    assert spent_at(api, headers, running(api, headers, *points, budget_compute=None)) is None
    run = running(api, headers, *points)
    with sessions.begin() as session:
        session.get_one(Run, run.run_id).status = "succeeded"
    assert spent_at(api, headers, run) is None


def test_beyond_its_budget_it_is_any_moment(api: TestClient, headers: Headers) -> None:
    run = running(api, headers, *((40.0 * at, 60.0 * at) for at in range(4)))
    assert spent_at(api, headers, run) == pytest.approx(180)
