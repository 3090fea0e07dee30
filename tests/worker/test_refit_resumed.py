"""A run that fell and goes on from before its fall, in another attempt."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from server.alerts.models import Alert
from server.forecasts.models import Recommendation
from server.runs.models import Run
from server.runs.views import run_view
from server.settings import Settings
from tests.server.forecasts.seeds import START, add_evaluations, events
from tests.worker.refitting import COLLAPSING, COMPUTE, HEALTHY, Sessions, around_assess, grow, ingest, run_of
from tests.worker.test_refit_watch import resolve_all
from worker.refit import refit


def resumed(sessions: Sessions, run_id: str, reward: Any, first: int, last: int, now: datetime) -> None:
    """Evaluations of the second attempt, which goes on from an earlier checkpoint."""
    with sessions.begin() as session:
        run = session.get_one(Run, run_id)
        run.attempt = 2
        add_evaluations(session, run, COMPUTE[first:last], reward[first:last], first_step=10 * first, attempt=2)
        run.dirty_at = now


def test_a_fall_after_a_resume_rings_though_one_at_the_same_compute_was_resolved(
    sessions: Sessions, settings: Settings
) -> None:
    """To go back to the checkpoint before it is what the alert says: what comes then is new evidence."""
    run_id = grow(sessions, settings, COLLAPSING, [18, 20, 41])
    resolve_all(sessions)
    now = START + timedelta(hours=50)
    resumed(sessions, run_id, COLLAPSING - 1e-6, 26, 36, now)  # up to less compute than was settled
    refit(sessions, settings, run_id, now)
    with sessions() as session:
        first, second = session.scalars(select(Alert).order_by(Alert.id))
    assert (first.resolved_attempt, first.resolved_compute, first.attempt) == (1, 80.0, 1)
    assert (second.level, second.attempt, second.resolved_at) == ("ALERT", 2, None)
    assert second.since_compute is not None
    assert 50.0 < second.since_compute <= 60.0


def test_a_fall_that_a_resume_has_undone_is_resolved_by_itself_and_not_told_at_the_end(
    sessions: Sessions, settings: Settings
) -> None:
    run_id = grow(sessions, settings, COLLAPSING, [18, 20, 36])
    now = START + timedelta(hours=50)
    resumed(sessions, run_id, HEALTHY, 26, 40, now)
    refit(sessions, settings, run_id, now)
    with sessions.begin() as session:
        alert = session.scalars(select(Alert)).one()
        assert (alert.resolved_at, alert.resolved_compute) == (now, None)  # it settles nothing
        (event,) = events(session, session.get_one(Run, run_id), "alert.resolved")
        assert event.reason == "The run went on from before it, in attempt 2."
        run = session.get_one(Run, run_id)
        run.status, run.finished_at, run.dirty_at = "succeeded", now, now
    refit(sessions, settings, run_id, now + timedelta(minutes=5))
    with sessions() as session:
        view = run_view(session, session.get_one(Run, run_id))
    assert view.fell_at is None
    assert "fell" not in view.sentence


def test_what_was_found_of_a_branch_that_is_thrown_away_meanwhile_rings_no_second_time(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, now = grow(sessions, settings, COLLAPSING, [18, 20, 36]), START + timedelta(hours=50)
    ingest(sessions, run_id, COLLAPSING, 36, 38, now)
    around_assess(monkeypatch, lambda: resumed(sessions, run_id, HEALTHY - 1e-6, 0, 2, now + timedelta(seconds=1)))
    refit(sessions, settings, run_id, now)
    with sessions() as session:
        alert = session.scalars(select(Alert)).one()
        assert (alert.attempt, alert.resolved_at, alert.resolved_compute) == (1, now, None)
        assert session.get_one(Run, run_id).dirty_at is not None


def test_a_fall_is_undone_as_soon_as_the_run_goes_on_from_before_it(sessions: Sessions, settings: Settings) -> None:
    """Though the new branch is too short for a forecast yet."""
    run_id, now = grow(sessions, settings, COLLAPSING, [18, 20, 36]), START + timedelta(hours=50)
    resumed(sessions, run_id, HEALTHY - 1e-6, 0, 2, now)
    refit(sessions, settings, run_id, now)
    with sessions() as session:
        assert session.scalars(select(Alert.resolved_at)).one() == now


@pytest.mark.parametrize("settled", [False, True])
def test_a_log_that_is_sent_anew_neither_undoes_a_fall_nor_rings_again(
    sessions: Sessions, settings: Settings, settled: bool
) -> None:
    """As a follower does that is started once more: its attempt says what was said, first in part, and then goes on."""
    run_id = grow(sessions, settings, COLLAPSING, [18, 20, 36])
    if settled:
        resolve_all(sessions)
    for hours, (first, last) in enumerate(((0, 22), (22, 30), (30, 36), (36, 40)), start=50):
        now = START + timedelta(hours=hours)
        resumed(sessions, run_id, COLLAPSING, first, last, now)
        refit(sessions, settings, run_id, now)
        with sessions() as session:
            alert = session.scalars(select(Alert).order_by(Alert.id)).first()
            assert alert is not None
            assert (alert.attempt, alert.back_since, alert.resolved_at is not None) == (1, None, settled)
    with sessions() as session:
        rung = session.scalars(select(Alert).order_by(Alert.id)).all()[1:]
        assert [(again.attempt, again.since_compute is not None and again.since_compute > 70) for again in rung] == (
            [(2, True)] if settled else []
        )


def test_a_resume_from_right_before_a_fall_undoes_it_though_the_same_step_cost_more(
    sessions: Sessions, settings: Settings
) -> None:
    run_id, now = grow(sessions, settings, COLLAPSING, [18, 20, 36]), START + timedelta(hours=50)
    with sessions.begin() as session:
        assert session.scalars(select(Alert.since_compute)).one() == COMPUTE[26]
        run = session.get_one(Run, run_id)
        add_evaluations(session, run, COMPUTE[26:40] + 0.3, HEALTHY[26:40], first_step=260, attempt=2)
    refit(sessions, settings, run_id, now)
    with sessions() as session:
        alert = session.scalars(select(Alert)).one()
    assert (alert.resolved_at, alert.back_since) == (now, None)


def test_what_was_resolved_and_is_said_once_more_rings_no_second_time_where_the_rest_differs(
    sessions: Sessions, settings: Settings
) -> None:
    run_id, now = grow(sessions, settings, COLLAPSING, [18, 20, 38]), START + timedelta(hours=50)
    resolve_all(sessions)
    resumed(sessions, run_id, np.where(COMPUTE < 70.0, COLLAPSING, HEALTHY), 0, 45, now)
    refit(sessions, settings, run_id, now)
    with sessions() as session:
        assert session.scalars(select(Alert.attempt)).all() == [1]


def test_an_alert_that_is_resolved_amid_a_log_that_is_sent_anew_is_settled_as_far_as_the_log_had_gone(
    sessions: Sessions, settings: Settings
) -> None:
    run_id = grow(sessions, settings, COLLAPSING, [18, 20, 36])
    for hours, (first, last) in enumerate(((0, 22), (22, 36)), start=50):
        now = START + timedelta(hours=hours)
        resumed(sessions, run_id, COLLAPSING, first, last, now)
        refit(sessions, settings, run_id, now)
        resolve_all(sessions)
    with sessions() as session:
        alert = session.scalars(select(Alert)).one()
    assert (alert.resolved_attempt, alert.resolved_compute) == (1, COMPUTE[35])


@pytest.mark.parametrize("last", [3, 5])
def test_an_attempt_from_scratch_shows_no_forecast_of_what_counts_no_more(
    sessions: Sessions, settings: Settings, last: int
) -> None:
    """While it is too short for one of its own, or cannot be fitted: nor its advice."""
    run_id, now = grow(sessions, settings, HEALTHY, [18, 20, 36]), START + timedelta(hours=50)
    again = HEALTHY + (1.0 if last > 4 else 0.001)
    resumed(sessions, run_id, again, 0, last, now)
    refit(sessions, settings, run_id, now)
    with sessions() as session:
        run = session.get_one(Run, run_id)
        view = run_view(session, run)
        assert (view.ceiling, view.ending, view.advice, run.forecast_id) == (None, None, None, None)
        assert "; no forecast" in view.sentence
        assert run.frozen_forecast_id is not None
        assert session.scalars(select(Recommendation).where(Recommendation.status == "open")).all() == []


def test_a_log_that_is_sent_anew_keeps_its_forecast_until_there_is_one_of_what_came(
    sessions: Sessions, settings: Settings
) -> None:
    """Said to be of the log before, with its advice; the first evaluation that differs takes it back."""
    run_id = grow(sessions, settings, HEALTHY, [18, 20, 36])
    said = run_of(sessions, run_id).forecast_id
    with sessions() as session:
        before = run_view(session, session.get_one(Run, run_id))
    for hours, (reward, first, last, kept) in enumerate(
        ((HEALTHY, 0, 1, True), (HEALTHY, 1, 2, True), (HEALTHY + 0.001, 2, 3, False)), start=50
    ):
        now = START + timedelta(hours=hours)
        resumed(sessions, run_id, reward, first, last, now)
        refit(sessions, settings, run_id, now)
        with sessions() as session:
            view = run_view(session, session.get_one(Run, run_id))
            assert (run_of(sessions, run_id).forecast_id == said) == kept
            assert (view.advice is not None) == kept
            if kept:
                assert view.ending == before.ending
                back = f"went back to {COMPUTE[last - 1]:g}."
                assert view.sentence == f"{before.sentence} This is as of 70 GPU-hours, from before its curve {back}"


def test_a_resume_that_keeps_what_was_forecast_keeps_its_forecast(sessions: Sessions, settings: Settings) -> None:
    run_id, now = grow(sessions, settings, HEALTHY, [18, 20, 36]), START + timedelta(hours=50)
    said = run_of(sessions, run_id).forecast_id
    resumed(sessions, run_id, HEALTHY + 1.0, 36, 38, now)
    refit(sessions, settings, run_id, now)
    assert run_of(sessions, run_id).forecast_id == said
