"""A run that fell and is back: its open alert says so, and nothing tells a fall of it when it is over."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from sqlalchemy import select

import worker.refit
from server.alerts.models import Alert
from server.runs.models import Run
from server.runs.schemas import RunView
from server.runs.views import run_view
from server.settings import Settings
from tests.server.forecasts.seeds import START, events
from tests.worker.refitting import COLLAPSING, COMPUTE, HEALTHY, Sessions, around_assess, end, grow, ingest, run_of
from worker.refit import refit

DIPS = np.where((COMPUTE > 50.0) & (COMPUTE < 76.0), COLLAPSING, HEALTHY)
TWICE = np.where(COMPUTE > 86.0, COLLAPSING, DIPS)


def alert_of(sessions: Sessions) -> Alert:
    with sessions() as session:
        return session.scalars(select(Alert)).one()


def ended(sessions: Sessions, settings: Settings, run_id: str) -> RunView:
    end(sessions, settings, run_id, START + timedelta(hours=2))
    with sessions() as session:
        return run_view(session, session.get_one(Run, run_id))


def test_an_open_alert_says_since_when_its_run_is_back(sessions: Sessions, settings: Settings) -> None:
    run_id = grow(sessions, settings, DIPS, [18, 20, 36])
    low = alert_of(sessions)
    assert (low.level, low.back_since) == ("ALERT", None)
    for before, after in ((36, 39), (39, 44)):  # one evaluation that is back says nothing
        ingest(sessions, run_id, DIPS, before, after, START + timedelta(hours=after))
        refit(sessions, settings, run_id, START + timedelta(hours=after))
        assert (alert_of(sessions).back_since is None) == (after == 39)
    back = alert_of(sessions)
    assert (back.back_since, back.resolved_at) == (76.0, None)
    assert back.text == f"{low.text} It has been back within its forecast since 76 GPU-hours."
    with sessions() as session:
        (event,) = events(session, run_of(sessions, run_id), "alert.back")
    assert event.reason == "It has been back within its forecast since 76 GPU-hours."
    view = ended(sessions, settings, run_id)
    assert view.fell_at is None
    assert "fell" not in view.sentence


def test_an_open_alert_says_whether_its_run_is_above_its_forecast_now(sessions: Sessions, settings: Settings) -> None:
    leaps = DIPS + 0.2 * ((COMPUTE >= 76.0) & (COMPUTE < 90.0))
    run_id = grow(sessions, settings, leaps, [18, 20, 36, 41])
    above = "It has been back since 76 GPU-hours and is above its forecast now."
    assert alert_of(sessions).text.endswith(f"the checkpoint before is the way back. {above}")
    ingest(sessions, run_id, leaps, 41, 49, START + timedelta(hours=41))
    refit(sessions, settings, run_id, START + timedelta(hours=41))
    within = "It has been back within its forecast since 76 GPU-hours."
    assert alert_of(sessions).text.endswith(f"the checkpoint before is the way back. {within}")
    with sessions() as session:  # told once
        (event,) = events(session, run_of(sessions, run_id), "alert.back")
    assert event.reason == above


def test_a_run_that_falls_again_is_not_back(sessions: Sessions, settings: Settings) -> None:
    run_id = grow(sessions, settings, TWICE, [18, 20, 36, 43, 51])
    alert = alert_of(sessions)
    assert alert.back_since is None
    assert "back" not in alert.text.removesuffix("the checkpoint before is the way back.")
    with sessions() as session:
        run = run_of(sessions, run_id)
        assert len(events(session, run, "alert.back")) == len(events(session, run, "alert.down_again")) == 1
    assert ended(sessions, settings, run_id).fell_at == alert.since_compute


def test_a_late_worker_tells_a_fall_that_is_over_as_one(sessions: Sessions, settings: Settings) -> None:
    grow(sessions, settings, DIPS, [18, 20, 51])
    alert = alert_of(sessions)
    assert (alert.level, alert.back_since, alert.title) == ("ALERT", 76.0, "no-cispo was below its forecast")
    assert "; below it from 5" in alert.text
    assert alert.text.endswith(
        " GPU-hours on. Its training metrics of that time may tell why. "
        "It has been back since 76 GPU-hours and is above its forecast now."
    )


@pytest.mark.parametrize("stops", [[30], [18, 20, 22, 30]])
@pytest.mark.parametrize("budget", [100.0, None])
def test_a_run_that_fell_before_its_freeze_and_recovered(
    sessions: Sessions, settings: Settings, budget: float | None, stops: list[int]
) -> None:
    """Whenever the worker comes to look at it."""
    early = HEALTHY - 0.35 * ((COMPUTE > 20.0) & (COMPUTE < 34.0))
    grow(sessions, settings, early, [11, 15, *stops], budget_compute=budget)
    alert = alert_of(sessions)
    assert (alert.kind, alert.back_since, alert.resolved_at) == ("fell", 34.0, None)
    assert alert.text.endswith(" It has recovered since 34 GPU-hours.")


def test_evaluations_that_come_after_the_end_do_not_date_a_fall_later(sessions: Sessions, settings: Settings) -> None:
    run_id = grow(sessions, settings, COLLAPSING, [18, 20, 36])
    fell_at = ended(sessions, settings, run_id).fell_at
    ingest(sessions, run_id, COLLAPSING, 36, 51, START + timedelta(hours=3))
    refit(sessions, settings, run_id, START + timedelta(hours=3))
    with sessions() as session:
        assert run_view(session, session.get_one(Run, run_id)).fell_at == fell_at == 52.0


def test_an_alert_is_not_settled_by_an_end_whose_fit_failed_and_is_tried_again(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left")

    run_id, later = grow(sessions, settings, COLLAPSING, [18, 20, 36]), START + timedelta(hours=2)
    with monkeypatch.context() as full:
        full.setattr(worker.refit, "assess", fail)
        end(sessions, settings, run_id, later)
    assert alert_of(sessions).resolved_at is None
    refit(sessions, settings, run_id, later + timedelta(minutes=6))
    assert alert_of(sessions).resolved_at == later + timedelta(minutes=6)


def test_a_run_that_ends_while_its_last_fit_is_being_made_fell_all_the_same(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refit began before the end, and by its own time it resolves the alert before the run was over."""
    run_id, now = grow(sessions, settings, COLLAPSING, [18, 20, 36]), START + timedelta(hours=2)

    def is_over() -> None:
        with sessions.begin() as session:
            run = session.get_one(Run, run_id)
            run.status, run.finished_at = "succeeded", now + timedelta(seconds=2)

    ingest(sessions, run_id, COLLAPSING, 36, 51, now)
    around_assess(monkeypatch, is_over)
    refit(sessions, settings, run_id, now)
    assert alert_of(sessions).resolved_at is not None
    with sessions() as session:
        assert run_view(session, session.get_one(Run, run_id)).fell_at == 52.0
