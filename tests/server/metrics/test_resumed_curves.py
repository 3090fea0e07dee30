"""A run that resumed from a checkpoint shows every step once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from server.metrics.curve import validation_curves
from server.runs.states import Status
from tests.conftest import Clock
from tests.server.reporting import Headers, Reporter, evaluation, launch, move, queued_run

Relaunch = Callable[..., Reporter]


@pytest.fixture
def relaunch(api: TestClient, sessions: sessionmaker[Session], headers: Headers, clock: Clock) -> Relaunch:
    """Gives one attempt after the other of the same run."""
    run_id = queued_run(api, headers)

    def next_attempt(first: bool = False) -> Reporter:
        if not first:
            move(sessions, run_id, Status.LOST, clock.now)
            move(sessions, run_id, Status.QUEUED, clock.now)
        return launch(api, sessions, run_id, clock.now)

    return next_attempt


def _curve(run: Reporter, headers: Headers) -> list[tuple[int, int, float]]:
    items = run.api.get(f"/v1/runs/{run.run_id}/evaluations", headers=headers["read"]).json()["items"]
    return [(item["step"], item["attempt"], item["reward"]) for item in items]


def test_points_past_the_resumption_are_those_of_the_newer_attempt(relaunch: Relaunch, headers: Headers) -> None:
    first = relaunch(first=True)
    first.send(1, *(evaluation(step, reward=step / 100) for step in (0, 10, 20, 30)))
    second = relaunch()
    assert _curve(second, headers) == [(0, 1, 0.0), (10, 1, 0.1), (20, 1, 0.2), (30, 1, 0.3)]
    second.send(1, evaluation(20, 21.0, reward=0.9))
    assert _curve(second, headers) == [(0, 1, 0.0), (10, 1, 0.1), (20, 2, 0.9)], "step 30 was thrown away"
    third = relaunch()
    third.send(1, evaluation(10, 10.5, reward=0.8), evaluation(20, 20.5, reward=0.7))
    assert _curve(third, headers) == [(0, 1, 0.0), (10, 3, 0.8), (20, 3, 0.7)]


def test_compute_never_goes_backwards_along_a_resumed_curve(relaunch: Relaunch, headers: Headers) -> None:
    first = relaunch(first=True)
    first.send(1, evaluation(10, 10.0), evaluation(20, 20.0), evaluation(25, 25.0))
    second = relaunch()
    second.send(1, evaluation(30, 22.0))  # its ledger was restored from step 20
    assert [step for step, _, _ in _curve(second, headers)] == [10, 20, 30]


def test_metric_points_are_not_doubled_either(relaunch: Relaunch, headers: Headers) -> None:
    first = relaunch(first=True)
    first.send(1, points=[{"metric": "loss", "step": step, "value": 1.0} for step in range(5)])
    first.send(2, points=[{"metric": "old", "step": 4, "value": 1.0}])
    second = relaunch()
    second.send(1, points=[{"metric": "loss", "step": step, "value": 2.0} for step in (3, 4, 5)])
    path = f"/v1/runs/{second.run_id}/metrics?metric="
    points = second.api.get(path + "loss", headers=headers["read"]).json()["points"]
    assert [(p["step"], p["attempt"], p["value"]) for p in points] == [
        (0, 1, 1.0),
        (1, 1, 1.0),
        (2, 1, 1.0),
        (3, 2, 2.0),
        (4, 2, 2.0),
        (5, 2, 2.0),
    ]
    pages = [second.api.get(f"{path}loss&limit=4", headers=headers["read"]).json()]
    pages.append(
        second.api.get(f"{path}loss&limit=4&since_step={pages[0]['next_step']}", headers=headers["read"]).json()
    )
    assert [page["next_step"] for page in pages] == [4, None]
    assert [point for page in pages for point in page["points"]] == points
    assert len(second.api.get(path + "old", headers=headers["read"]).json()["points"]) == 1
    assert second.api.get(path + "none", headers=headers["read"]).json()["points"] == []


def test_thinned_metrics_keep_the_spike_and_say_what_is_not_finite(relaunch: Relaunch, headers: Headers) -> None:
    first = relaunch(first=True)
    values = [1.0] * 100 + ["NaN", "Infinity"]
    values[37] = 9.0
    first.send(1, points=[{"metric": "loss", "step": k, "compute": k / 10, "value": v} for k, v in enumerate(values)])
    second = relaunch()
    second.send(1, points=[{"metric": "loss", "step": step, "value": 3.0} for step in range(90, 120)])
    path = f"/v1/runs/{second.run_id}/metrics:thinned?metric=loss&metric=none&buckets=12"
    answer = second.api.get(path, headers=headers["read"]).json()
    loss, none = answer["items"]
    assert answer["unit"] == "CPU-seconds"
    assert (none["metric"], none["points"], none["buckets"]) == ("none", 0, [])
    assert (loss["points"], loss["not_finite"], len(loss["buckets"])) == (120, 0, 12)
    assert [bucket["step"] for bucket in loss["buckets"]] == [9, 19, 29, 39, 49, 59, 69, 79, 89, 99, 109, 119]
    spike = loss["buckets"][3]
    assert (spike["mean"], spike["least"], spike["greatest"], spike["compute"]) == (1.8, 1.0, 9.0, 3.9)
    assert (loss["buckets"][-1]["mean"], loss["buckets"][-1]["compute"]) == (3.0, None)

    third = relaunch()
    third.send(1, points=[{"metric": "loss", "step": 0, "value": "NaN"}, {"metric": "loss", "step": 1, "value": 2.0}])
    (loss,) = third.api.get(path.replace("&metric=none", ""), headers=headers["read"]).json()["items"]
    assert (loss["points"], loss["not_finite"]) == (2, 1)
    assert [bucket["mean"] for bucket in loss["buckets"]] == [None, 2.0]


def test_the_summary_follows_the_newest_attempt(relaunch: Relaunch, headers: Headers) -> None:
    first = relaunch(first=True)
    first.send(1, evaluation(10), evaluation(90, reward=0.9))
    second = relaunch()
    second.send(1, evaluation(20, reward=0.3))
    run = second.api.get(f"/v1/runs/{second.run_id}", headers=headers["read"]).json()
    assert (run["attempt"], run["last_step"], run["last_reward"]) == (2, 20, 0.3)


def test_curves_of_no_runs_are_none(session: Session) -> None:
    assert validation_curves(session, []) == {}
