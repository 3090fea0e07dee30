"""Refits: at most one in flight, nothing forgotten, the forecast frozen once, and a fall that is said once."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

import worker.refit
from server.alerts.models import Alert, Delivery
from server.forecasts import curves
from server.forecasts.models import Forecast, Recommendation
from server.forecasts.schemas import CurveView, ForecastView
from server.metrics.curve import Point
from server.runs.models import Run
from server.settings import Settings
from tests.server.forecasts.seeds import (
    START,
    add_evaluations,
    enqueued,
    events,
    make_channel,
    make_forecast,
    make_run,
    make_sweep,
    sigmoid,
)
from worker.assessment import Assessment, assess, json_safe, rising
from worker.refit import REFIT_TASK, refit

Sessions = sessionmaker[Session]

COMPUTE = np.linspace(0.0, 100.0, 51)
HEALTHY = sigmoid(COMPUTE) + np.random.default_rng(7).normal(0.0, 6e-5**0.5, 51)
COLLAPSING = HEALTHY - np.clip(0.02 * (np.arange(51) - 25), 0.0, 0.3)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(DATABASE_URL="postgresql://unused", data_dir=tmp_path, refit_every_s=0.0, lease_s=60.0)


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


def test_a_refit_stores_a_forecast_that_the_chart_can_show_and_leaves_the_run_clean(
    sessions: Sessions, settings: Settings
) -> None:
    run_id = start_run(sessions, points=16)
    refit(sessions, settings, run_id, START)
    run = run_of(sessions, run_id)
    (forecast,) = forecasts(sessions, run_id)
    assert (run.forecast_id, run.dirty_at, run.fitted_at, run.fit_lease) == (forecast.id, None, START, None)
    assert (forecast.at_compute, forecast.at_step, forecast.points, forecast.unit) == (30.0, 150, 16, "GPU-hours")
    A = forecast.summary["A"]
    assert A["lower"] < 0.78 < A["upper"]
    assert forecast.summary["at_budget"]["compute"] == 100.0
    assert (
        forecast.summary["at_budget"]["curve"]["lower"]
        < sigmoid(100.0)
        < forecast.summary["at_budget"]["curve"]["upper"]
    )
    band = forecast.band
    assert {len(values) for values in band.values()} == {80}
    assert (band["compute"][0], band["compute"][-1]) == (2.0, 125.0)
    for low, high in ("lower90", "lower50"), ("lower50", "median"), ("median", "upper50"), ("upper50", "upper90"):
        assert np.all(np.array(band[low]) <= np.array(band[high]))
    assert forecast.sentence.startswith("Ceiling")
    assert forecast.summary["advice"]["action"] in ("continue", "scale", "stop", "undecided")
    assert forecast.state == {}  # only the frozen one carries its state
    with sessions() as session:
        (event,) = events(session, run, "forecast")
        assert (event.actor, event.evidence["forecast"]) == ("refit", forecast.id)
        advice = session.scalars(select(Recommendation).where(Recommendation.run_id == run_id)).one()
        assert (advice.forecast_id, advice.action) == (forecast.id, forecast.summary["advice"]["action"])
        view = curves.run_curve(session, run_id)
    CurveView.model_validate_json(view.model_dump_json())
    assert view.forecast == ForecastView.of(forecast)
    json.dumps(forecast.summary, allow_nan=False)


def test_a_forecast_says_how_the_run_will_end_and_that_it_is_the_posterior(
    sessions: Sessions, settings: Settings
) -> None:
    run_id = start_run(sessions, points=16)
    refit(sessions, settings, run_id, START)
    (forecast,) = forecasts(sessions, run_id)
    said = forecast.summary["at_budget"]
    assert said["conformal"] == {"calibration": "posterior", "shift": 0.0, "factor": 1.0, "runs": 0}
    assert said["calibrated"] == said["ending"]
    # a mean of the last five evaluations is steadier than one of them
    ending, evaluation = (said[name]["upper"] - said[name]["lower"] for name in ("ending", "evaluation"))
    assert ending < evaluation
    assert said["ending"]["lower"] < float(sigmoid(COMPUTE[-5:]).mean()) < said["ending"]["upper"]
    assert ForecastView.of(forecast).at_budget is not None


def test_from_nine_finished_runs_on_a_forecast_learns_how_theirs_turned_out(
    sessions: Sessions, settings: Settings
) -> None:
    """Nine runs of the sweep ended .08 above what was forecast of them at 30 %: the tenth forecast is moved."""
    with sessions.begin() as session:
        sweep_id = make_sweep(session).id
        for _ in range(9):
            run = make_run(session, sweep_id=sweep_id, status="succeeded")
            add_evaluations(session, run, COMPUTE, sigmoid(COMPUTE) + 0.08)
            make_forecast(session, run, at_compute=30.0)
    run_id = start_run(sessions, points=16, sweep_id=sweep_id)
    refit(sessions, settings, run_id, START)
    (forecast,) = forecasts(sessions, run_id)
    said = forecast.summary["at_budget"]
    assert said["conformal"]["calibration"] == "conformal (9 past runs)"
    assert said["conformal"]["shift"] == pytest.approx(4.0, abs=0.1)  # half widths of .02
    half = said["ending"]["upper"] - said["ending"]["median"]
    assert said["calibrated"]["median"] == pytest.approx(
        min(said["ending"]["median"] + said["conformal"]["shift"] * half, 1.0), abs=1e-6
    )
    view = ForecastView.of(forecast).at_budget
    assert view is not None
    assert view.conformal is not None
    assert view.conformal.runs == 9


@pytest.mark.parametrize("points", [0, 1, 3])
def test_too_few_points_make_no_forecast_and_leave_the_run_clean(
    sessions: Sessions, settings: Settings, points: int
) -> None:
    run_id = start_run(sessions, points=points)
    refit(sessions, settings, run_id, START)
    assert run_of(sessions, run_id).dirty_at is None
    assert forecasts(sessions, run_id) == []


def test_four_points_with_the_start_are_enough(sessions: Sessions, settings: Settings) -> None:
    run_id = start_run(sessions, points=4)
    refit(sessions, settings, run_id, START)
    assert [f.points for f in forecasts(sessions, run_id)] == [4]


def test_evaluations_that_are_no_curve_make_no_forecast_and_no_endless_loop(
    sessions: Sessions, settings: Settings
) -> None:
    run_id = start_run(sessions, reward=HEALTHY + 1.0)
    refit(sessions, settings, run_id, START)
    assert forecasts(sessions, run_id) == []
    assert run_of(sessions, run_id).dirty_at is None


def test_a_clean_run_and_an_unknown_run_are_left_alone(sessions: Sessions, settings: Settings) -> None:
    run_id = start_run(sessions)
    for _ in range(2):
        refit(sessions, settings, run_id, START)
    refit(sessions, settings, "run_unknown", START)
    assert len(forecasts(sessions, run_id)) == 1
    with sessions() as session:
        assert enqueued(session, REFIT_TASK) == []


def test_two_refits_at_once_make_one_forecast(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(sessions)
    in_flight, other_done = threading.Event(), threading.Event()

    def hold() -> None:
        in_flight.set()
        assert other_done.wait(20)

    around_assess(monkeypatch, hold)
    first = threading.Thread(target=lambda: refit(sessions, settings, run_id, START))
    first.start()
    assert in_flight.wait(20)
    refit(sessions, settings, run_id, START)  # returns at once: the first is in flight
    assert forecasts(sessions, run_id) == []
    other_done.set()
    first.join()
    assert len(forecasts(sessions, run_id)) == 1
    assert run_of(sessions, run_id).dirty_at is None


def test_what_arrives_during_a_refit_leaves_the_run_dirty_and_asks_for_another(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(sessions)
    around_assess(monkeypatch, lambda: ingest(sessions, run_id, HEALTHY, 12, 14))
    refit(sessions, settings, run_id, START)
    monkeypatch.undo()
    assert run_of(sessions, run_id).dirty_at is not None
    with sessions() as session:
        assert enqueued(session, REFIT_TASK) == [[run_id]]
    refit(sessions, settings, run_id, START + timedelta(seconds=1))
    assert [f.points for f in forecasts(sessions, run_id)] == [12, 14]
    assert run_of(sessions, run_id).dirty_at is None


def test_a_run_is_not_refitted_more_often_than_asked_but_comes_back(sessions: Sessions, settings: Settings) -> None:
    settings.refit_every_s = 10.0
    run_id = start_run(sessions)
    refit(sessions, settings, run_id, START)
    ingest(sessions, run_id, HEALTHY, 12, 13)
    refit(sessions, settings, run_id, START + timedelta(seconds=9))
    assert len(forecasts(sessions, run_id)) == 1
    from server.events.models import OutboxMessage

    with sessions() as session:
        message = session.scalars(select(OutboxMessage).where(OutboxMessage.task == REFIT_TASK)).one()
    assert (message.args, message.not_before) == ([run_id], START + timedelta(seconds=10))
    refit(sessions, settings, run_id, START + timedelta(seconds=10))
    assert len(forecasts(sessions, run_id)) == 2


def test_a_refit_that_died_is_taken_up_when_its_lease_ends(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(sessions)

    def die() -> None:
        raise KeyboardInterrupt

    around_assess(monkeypatch, die)
    with pytest.raises(KeyboardInterrupt):
        refit(sessions, settings, run_id, START)
    monkeypatch.undo()
    refit(sessions, settings, run_id, START + timedelta(seconds=59))
    assert forecasts(sessions, run_id) == []
    refit(sessions, settings, run_id, START + timedelta(seconds=60))
    assert len(forecasts(sessions, run_id)) == 1


def test_a_refit_that_was_overtaken_writes_nothing(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(sessions)
    overtaken: list[bool] = []

    def be_slow() -> None:
        if not overtaken:
            overtaken.append(True)
            refit(sessions, settings, run_id, START + timedelta(seconds=61))

    around_assess(monkeypatch, be_slow)
    refit(sessions, settings, run_id, START)
    (forecast,) = forecasts(sessions, run_id)
    assert forecast.created_at == START + timedelta(seconds=61)
    assert run_of(sessions, run_id).fitted_at == START + timedelta(seconds=61)


def test_no_transaction_is_open_during_the_fit(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(sessions)

    def look() -> None:
        with sessions.begin() as session:
            free = select(Run.id).where(Run.id == run_id).with_for_update(skip_locked=True)
            assert session.scalars(free).all() == [run_id]
            from sqlalchemy import text

            mine = text(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'"
            )
            assert session.scalar(mine) == 0

    around_assess(monkeypatch, look)
    refit(sessions, settings, run_id, START)
    assert len(forecasts(sessions, run_id)) == 1


def grow(sessions: Sessions, settings: Settings, reward: Any, stops: list[int], **columns: Any) -> str:
    """A run that is refitted each time its curve has grown to so many points."""
    run_id = start_run(sessions, reward, points=stops[0], **columns)
    refit(sessions, settings, run_id, START)
    for number, (before, after) in enumerate(pairwise(stops), start=1):
        now = START + timedelta(minutes=number)
        ingest(sessions, run_id, reward, before, after, now)
        refit(sessions, settings, run_id, now)
    return run_id


def test_the_forecast_is_frozen_once_at_its_share_of_the_budget(sessions: Sessions, settings: Settings) -> None:
    run_id = grow(sessions, settings, HEALTHY, [10, 18, 20, 24, 30])
    run = run_of(sessions, run_id)
    by_compute = {f.at_compute: f for f in forecasts(sessions, run_id)}
    frozen = by_compute[38.0]  # 18 and 34 are before 35 % of 100, 38 is the first refit past it; it froze at 36
    assert run.frozen_forecast_id != frozen.id
    assert run.frozen_forecast_id == by_compute[36.0].id
    assert run.forecast_id == by_compute[58.0].id
    assert by_compute[36.0].state["at_compute"] == 36.0
    assert by_compute[36.0].points == 19
    with sessions() as session:
        assert [e.evidence["forecast"] for e in events(session, run, "forecast.frozen")] == [by_compute[36.0].id]
        assert len(events(session, run, "forecast")) == 5


def test_the_newest_forecast_is_itself_frozen_when_it_is_the_first_past_the_mark(
    sessions: Sessions, settings: Settings
) -> None:
    run_id = grow(sessions, settings, HEALTHY, [18, 19])
    run = run_of(sessions, run_id)
    assert run.frozen_forecast_id == run.forecast_id
    assert len(forecasts(sessions, run_id)) == 2


@pytest.mark.parametrize(
    ("stops", "columns", "rule"),
    [([30], {"budget_compute": None}, {}), ([12], {}, {}), ([22], {}, {"freeze_min_points": 23})],
)
def test_nothing_is_frozen_without_a_budget_or_before_the_mark_or_with_too_few_points(
    sessions: Sessions, settings: Settings, stops: list[int], columns: dict[str, Any], rule: dict[str, Any]
) -> None:
    run_id = grow(sessions, settings.model_copy(update=rule), HEALTHY, stops, **columns)
    assert run_of(sessions, run_id).forecast_id is not None
    assert run_of(sessions, run_id).frozen_forecast_id is None


def test_a_collapsing_run_gives_exactly_one_alert_with_one_delivery(sessions: Sessions, settings: Settings) -> None:
    with sessions.begin() as session:
        make_channel(session, "https://hooks.example/x")
    run_id = grow(sessions, settings, COLLAPSING, [18, 20, 24, 26, 28, 30, 31, 32, 34, 38, 44, 51])
    run = run_of(sessions, run_id)
    with sessions() as session:
        alert = session.scalars(select(Alert)).one()
        delivery = session.scalars(select(Delivery)).one()
        steps = [(e.from_state, e.to_state) for e in events(session, run, "alert")]
        view = curves.run_curve(session, run_id)
    assert (alert.kind, alert.level, alert.run_id) == ("below_forecast", "ALERT", run_id)
    assert (delivery.alert_id, delivery.level) == (alert.id, "ALERT")
    assert steps in ([(None, "ALERT")], [(None, "WARN"), ("WARN", "ALERT")])
    number = r"\d+(\.\d+)?"
    assert re.fullmatch(
        rf"`no-cispo` fell below its own forecast: 0\.\d+ at {number} GPU-hours, "
        rf"forecast 0\.\d+ \(90 %: 0\.\d+ to 0\.\d+\), since {number} GPU-hours\.",
        alert.text,
    ), alert.text
    assert alert.title == "no-cispo fell below its forecast"
    assert alert.since_compute is not None
    assert alert.at_compute is not None
    assert 48.0 <= alert.since_compute <= 56.0  # the fall begins after 50
    assert alert.since_compute <= alert.at_compute <= 70.0
    evidence = alert.evidence
    assert evidence["frozen_forecast"] == run.frozen_forecast_id
    assert evidence["e_value_robust"] >= evidence["thresholds"]["ALERT"]
    assert evidence["expected"]["lower"] > evidence["actual"]
    assert [p["compute"] for p in evidence["points"]] == [float(c) for c in COMPUTE[19:] if c <= alert.at_compute]
    assert evidence["points"][-1]["z"] < -1.0
    assert [mark.id for mark in view.alerts] == [alert.id]


def test_a_healthy_run_gives_no_alert(sessions: Sessions, settings: Settings) -> None:
    run_id = grow(sessions, settings, HEALTHY, [18, 20, 24, 30, 36, 42, 51])
    assert run_of(sessions, run_id).frozen_forecast_id is not None
    with sessions() as session:
        assert session.scalars(select(Alert)).all() == []


SLOWER = HEALTHY - np.interp(COMPUTE, [36.0, 100.0], [0.0, 0.06])
"""Bends earlier than its forecast thought, a little at each evaluation."""


def test_a_slow_change_of_the_forecast_is_noted_once_and_is_no_alert(sessions: Sessions, settings: Settings) -> None:
    run_id = grow(sessions, settings, SLOWER, [18, 20, 30, 40, 41, 42])
    run = run_of(sessions, run_id)
    with sessions() as session:
        assert session.scalars(select(Alert)).all() == []
        (event,) = events(session, run, "forecast.revised")
    assert (event.actor, event.from_state, event.to_state) == ("watch", None, "down")
    assert event.evidence["frozen_forecast"] == run.frozen_forecast_id
    assert event.evidence["after"]["median"] < event.evidence["before"]["lower"]
    assert event.reason is not None
    assert "revised from 0." in event.reason
    assert event.reason.endswith("slow, legitimate.")


def test_a_forecast_that_holds_or_an_alarm_is_no_revision(sessions: Sessions, settings: Settings) -> None:
    for reward in (HEALTHY, COLLAPSING):
        run_id = grow(sessions, settings, reward, [18, 20, 30, 42])
        with sessions() as session:
            assert events(session, run_of(sessions, run_id), "forecast.revised") == []


def test_a_worker_that_comes_late_freezes_what_was_known_then_and_sees_the_fall(
    sessions: Sessions, settings: Settings
) -> None:
    run_id = grow(sessions, settings, COLLAPSING, [51])
    early, newest = sorted(forecasts(sessions, run_id), key=lambda f: f.at_compute)
    run = run_of(sessions, run_id)
    assert (early.at_compute, newest.at_compute) == (36.0, 100.0)
    assert (run.frozen_forecast_id, run.forecast_id) == (early.id, newest.id)
    with sessions() as session:
        assert session.scalars(select(Alert.level)).all() == ["ALERT"]


@pytest.mark.parametrize(("policy", "wanted"), [("auto", "stop"), ("advise", "run")])
def test_policy_auto_stops_a_run_that_has_nothing_left_to_gain(
    sessions: Sessions, settings: Settings, policy: str, wanted: str
) -> None:
    flat = sigmoid(COMPUTE, C_mid=3.0, B=2.5) + np.random.default_rng(3).normal(0.0, 6e-5**0.5, 51)
    with sessions.begin() as session:
        sweep = make_sweep(session, policy).id
    run_id = grow(sessions, settings, flat, [30], sweep_id=sweep)
    run = run_of(sessions, run_id)
    with sessions() as session:
        advice = session.scalars(select(Recommendation)).one()
    assert advice.action == "stop"
    assert run.desired_state == wanted
    assert advice.status == ("accepted" if policy == "auto" else "open")


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


def point(step: int, compute: float) -> Point:
    return Point(step, 1, compute, 0.5, None, None, None, {}, datetime(2026, 1, 1, tzinfo=UTC))


@given(st.lists(st.floats(0, 100), max_size=30))
def test_rising_points_rise_end_with_the_last_and_keep_all_that_rose_already(computes: list[float]) -> None:
    points = [point(step, compute) for step, compute in enumerate(computes)]
    kept = rising(points)
    assert all(a.compute < b.compute and a.step < b.step for a, b in pairwise(kept))
    assert kept[-1:] == points[-1:]
    strictly = sorted(set(computes))
    assert [p.compute for p in rising([point(n, c) for n, c in enumerate(strictly)])] == strictly


def test_numbers_that_json_does_not_know_become_null() -> None:
    value = {
        "a": np.float64("inf"),
        "b": [float("nan"), np.int64(3)],
        "c": np.array([1.0, -np.inf]),
        "d": (True, "x", None),
    }
    assert json_safe(value) == {"a": None, "b": [None, 3], "c": [1.0, None], "d": [True, "x", None]}
