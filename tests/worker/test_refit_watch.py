"""The forecast is frozen once; a fall below it is said once, a slow change is noted and is no alert."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from server.alerts.models import Alert, Delivery
from server.alerts.service import resolve
from server.forecasts import curves
from server.metrics.curve import INHERITED
from server.runs.models import Run
from server.runs.views import run_view
from server.settings import Settings
from tests.server.forecasts.seeds import START, add_evaluations, events, make_channel, make_run
from tests.worker.refitting import (
    COLLAPSING,
    COMPUTE,
    HEALTHY,
    Sessions,
    around_assess,
    end,
    forecasts,
    grow,
    ingest,
    run_of,
    start_run,
)
from worker.refit import refit


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
        rf"0\.\d+ at {number} GPU-hours, where 0\.\d+ \(90 %: 0\.\d+ to 0\.\d+\) was forecast; "
        rf"below it since {number} GPU-hours\. Its training metrics since then may tell why; "
        r"the checkpoint before is the way back\.",
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


def test_a_collapse_that_is_no_surprise_in_so_noisy_a_run_is_a_warning_all_the_same(
    sessions: Sessions, settings: Settings
) -> None:
    rng, compute = np.random.default_rng(2), np.arange(1, 41) * 2.5
    reward = 0.85 - 0.5 * np.exp(-compute / 6) + 0.09 * rng.normal(size=40)
    reward[18], reward[21:25] = 0.5, (0.31, 0.29, 0.26, 0.55)  # a dip that it comes back from
    reward[30], reward[31:] = 0.4, 0.01 * rng.integers(0, 3, 9)
    reward = np.clip(np.round(reward, 4), 0, 1)
    run_id = start_run(sessions, points=0)
    levels = []
    for before, after in ((0, 14), (14, 30), (30, 33), (33, 40)):
        now = START + timedelta(minutes=after)
        with sessions.begin() as session:
            run = session.get_one(Run, run_id)
            add_evaluations(
                session, run, compute[before:after], reward[before:after], first_step=10 * before, variance=None
            )
            run.dirty_at = now
        refit(sessions, settings, run_id, now)
        with sessions() as session:
            levels.append([alert.level for alert in session.scalars(select(Alert))])
    assert levels == [[], [], ["WARN"], ["WARN"]]
    with sessions() as session:
        alert = session.scalars(select(Alert)).one()
    assert alert.title == "no-cispo may be falling below its forecast"
    assert alert.text.startswith("0.0")
    assert "The pass rate fell by 0.9" in alert.text or "The pass rate collapsed by 0.9" in alert.text
    assert f"{alert.evidence['fall']} GPU-hours. It may be chance, or pass: " in alert.text
    assert alert.evidence["e_value"] < alert.evidence["thresholds"]["WARN"]
    assert alert.since_compute == 77.5


def resolve_all(sessions: Sessions) -> None:
    with sessions.begin() as session:
        for alert_id in session.scalars(select(Alert.id)).all():
            resolve(session, alert_id, actor="tok_1", now=START)


def go_on(sessions: Sessions, settings: Settings, run_id: str, reward: Any, first: int, last: int) -> list[Alert]:
    """One more refit with the evaluations up to `last`; all alerts since, oldest first."""
    now = START + timedelta(hours=last)
    ingest(sessions, run_id, reward, first, last, now)
    refit(sessions, settings, run_id, now)
    with sessions() as session:
        return list(session.scalars(select(Alert).order_by(Alert.id)))


def test_what_was_resolved_rings_again_only_by_later_evaluations(sessions: Sessions, settings: Settings) -> None:
    run_id = grow(sessions, settings, COLLAPSING, [18, 20, 38])
    resolve_all(sessions)
    with sessions.begin() as session:
        session.get_one(Run, run_id).dirty_at = START + timedelta(minutes=30)
    refit(sessions, settings, run_id, START + timedelta(minutes=30))  # what was seen already, once more
    first, second = go_on(sessions, settings, run_id, COLLAPSING, 38, 51)
    assert first.resolved_compute == 74.0
    assert (second.level, second.resolved_at) == ("ALERT", None)
    assert second.opened_at > START + timedelta(hours=1)
    assert [point["compute"] for point in second.evidence["points"]] == [float(c) for c in COMPUTE[38:]]


def test_of_a_run_that_is_over_no_warning_waits_for_evaluations(sessions: Sessions, settings: Settings) -> None:
    run_id = grow(sessions, settings, EARLY, [9, 10], budget_compute=None)
    with sessions.begin() as session:
        session.get_one(Run, run_id).status = "succeeded"
    assert go_on(sessions, settings, run_id, EARLY, 10, 16) == []


def test_a_run_that_comes_back_after_its_alert_was_resolved_gives_no_other(
    sessions: Sessions, settings: Settings
) -> None:
    fell_once = np.where((COMPUTE > 50.0) & (COMPUTE < 76.0), COLLAPSING, HEALTHY)
    run_id = grow(sessions, settings, fell_once, [18, 20, 38])
    resolve_all(sessions)
    assert len(go_on(sessions, settings, run_id, fell_once, 38, 51)) == 1
    with sessions() as session:
        assert events(session, run_of(sessions, run_id), "forecast.revised") == []


def test_an_alarm_that_was_found_before_its_alert_was_resolved_is_not_said_after_it(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = grow(sessions, settings, COLLAPSING, [18, 20, 38])
    around_assess(monkeypatch, lambda: resolve_all(sessions))
    assert len(go_on(sessions, settings, run_id, COLLAPSING, 38, 51)) == 1


def test_the_last_refit_of_a_run_says_a_fall_and_resolves_it(sessions: Sessions, settings: Settings) -> None:
    with sessions.begin() as session:
        make_channel(session, "https://hooks.example/x")
    run_id = grow(sessions, settings, COLLAPSING, [18, 20])
    with sessions.begin() as session:
        session.get_one(Run, run_id).status = "succeeded"
    (alert,) = go_on(sessions, settings, run_id, COLLAPSING, 20, 51)
    assert (alert.level, alert.resolved_compute) == ("ALERT", 100.0)
    with sessions() as session:
        sent = session.execute(select(Delivery.level, Delivery.event).order_by(Delivery.event)).all()
        assert sent == [("ALERT", "alert"), ("ALERT", "alert.resolved")]
        assert [e.reason for e in events(session, run_of(sessions, run_id), "alert.resolved")] == ["The run is over."]


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_run_that_fell_and_ended_so_says_it_for_good_unless_somebody_had_resolved_it(
    sessions: Sessions, settings: Settings, by_hand: bool
) -> None:
    run_id = grow(sessions, settings, COLLAPSING, [18, 20, 51])
    with sessions() as session:
        assert run_view(session, session.get_one(Run, run_id)).fell_at is None  # it goes on: its open alert says it
    if by_hand:
        resolve_all(sessions)
    ended = START + timedelta(hours=2)
    end(sessions, settings, run_id, ended)
    with sessions() as session:
        assert session.scalars(select(Alert.resolved_at)).one() == (START if by_hand else ended)
        view = run_view(session, session.get_one(Run, run_id))
    said = "GPU-hours. No ceiling can be read from its curve."
    if by_hand:
        assert view.fell_at is None
        assert "fell" not in view.sentence
    else:
        assert view.fell_at is not None
        assert 48.0 <= view.fell_at <= 56.0
        assert view.sentence.endswith(f". It fell below its forecast at {view.fell_at:.0f} {said}")


EARLY = HEALTHY - 0.35 * (COMPUTE > 20.0)
"""It collapses before its forecast is frozen, at 35 % of its budget."""


@pytest.mark.parametrize("budget", [100.0, None])
def test_a_collapse_before_a_forecast_is_frozen_is_a_warning(
    sessions: Sessions, settings: Settings, budget: float | None
) -> None:
    run_id = grow(sessions, settings, EARLY, [11, 12], budget_compute=budget)
    with sessions() as session:
        assert session.scalars(select(Alert)).all() == []  # one evaluation alone may be a bad one
    for last in (13, 14, 16):
        alerts = go_on(sessions, settings, run_id, EARLY, last - (2 if last == 16 else 1), last)
    (alert,) = alerts
    assert (alert.kind, alert.level, alert.title) == ("fell", "WARN", "no-cispo may have collapsed")
    assert alert.since_compute == 22.0
    before = "" if budget is None else ", before its forecast was frozen"
    assert re.fullmatch(
        rf"0\.\d+ at 2\d GPU-hours{before}\. The pass rate collapsed by 0\.3\d, beginning about 20 GPU-hours\. "
        r"It may recover\. Its training metrics .* is the way back\.",
        alert.text,
    ), alert.text
    assert run_of(sessions, run_id).frozen_forecast_id is None


def test_a_fall_that_came_gradually_before_a_forecast_is_frozen_is_a_warning(
    sessions: Sessions, settings: Settings
) -> None:
    """Whether a fit calls it a collapse or a decline: it is never frozen, so nothing else would ring."""
    fading = HEALTHY - np.interp(COMPUTE, [20.0, 36.0], [0.0, 0.35])
    run_id = grow(sessions, settings, fading, [10, 14, 18, 22, 26, 32], budget_compute=None)
    with sessions() as session:
        (alert,) = session.scalars(select(Alert)).all()
    assert (alert.kind, alert.level, alert.title) == ("fell", "WARN", "no-cispo may be falling")
    assert "The pass rate fell by 0." in alert.text
    assert alert.since_compute is not None
    assert 18.0 <= alert.since_compute <= 26.0
    assert run_of(sessions, run_id).frozen_forecast_id is None


def test_a_collapse_that_was_resolved_rings_no_second_time_and_ends_with_its_run(
    sessions: Sessions, settings: Settings
) -> None:
    run_id = grow(sessions, settings, EARLY, [12, 14], budget_compute=None)
    resolve_all(sessions)
    (alert,) = go_on(sessions, settings, run_id, EARLY, 14, 20)
    assert alert.resolved_compute == 26.0
    other = grow(sessions, settings, EARLY, [12, 14], budget_compute=None)
    with sessions.begin() as session:
        session.get_one(Run, other).status = "succeeded"
    assert all(alert.resolved_at for alert in go_on(sessions, settings, other, EARLY, 14, 20))


def test_a_healthy_run_gives_no_alert(sessions: Sessions, settings: Settings) -> None:
    grow(sessions, settings, HEALTHY, list(range(4, 20)), budget_compute=None)
    run_id = grow(sessions, settings, HEALTHY, [18, 20, 24, 30, 36, 42, 51])
    assert run_of(sessions, run_id).frozen_forecast_id is not None
    with sessions() as session:
        assert session.scalars(select(Alert)).all() == []


def forked(sessions: Sessions, settings: Settings, reward: Any, points: int) -> str:
    """A fork that has inherited so many evaluations of a curve, refitted before it starts."""
    with sessions.begin() as session:
        run = make_run(session, status="queued")
        add_evaluations(session, run, COMPUTE[:points], reward[:points], attempt=INHERITED)
        run.dirty_at = START
    refit(sessions, settings, run.id, START)
    return run.id


def test_a_fork_is_forecast_before_it_starts_and_judged_by_its_parents_whole_curve(
    sessions: Sessions, settings: Settings
) -> None:
    run_id = forked(sessions, settings, HEALTHY, 26)
    (only,) = forecasts(sessions, run_id)
    assert (only.at_compute, only.points) == (50.0, 26)
    assert run_of(sessions, run_id).frozen_forecast_id == only.id


def test_a_fork_is_not_blamed_for_its_parents_fall_but_for_its_own(sessions: Sessions, settings: Settings) -> None:
    with sessions.begin() as session:
        make_channel(session, "https://hooks.example/x")
    fallen = HEALTHY - 0.3 * ((COMPUTE >= 40.0) & (COMPUTE <= 50.0))  # all of it before the fork
    forked(sessions, settings, fallen, 28)
    healthy = forked(sessions, settings, HEALTHY, 26)
    with sessions() as session:
        assert session.scalars(select(Alert)).all() == []
    ingest(sessions, healthy, COLLAPSING, 26, 51)
    refit(sessions, settings, healthy, START + timedelta(minutes=1))
    with sessions() as session:
        assert [alert.run_id for alert in session.scalars(select(Alert))] == [healthy]


SLOWER = HEALTHY - np.interp(COMPUTE, [36.0, 100.0], [0.0, 0.065])
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
