"""Refits: at most one in flight, and nothing forgotten."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from sqlalchemy import select, text
from sqlalchemy.orm import Session

import worker.refit
from server.database import transaction
from server.events.models import Event, OutboxMessage
from server.forecasts.past_runs import PastRun, past_runs
from server.metrics.curve import Point
from server.runs.models import Run
from server.runs.views import run_view
from server.settings import Settings
from tests.server.forecasts.seeds import START, add_evaluations, enqueued, events, make_run
from tests.worker.refitting import (
    COMPUTE,
    HEALTHY,
    Sessions,
    around_assess,
    forecasts,
    ingest,
    run_of,
    start_run,
)
from worker.refit import REFIT_TASK, UNFITTED, refit


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


def test_what_arrives_before_a_refit_reads_is_seen_by_it_and_asks_for_no_other(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, opened = start_run(sessions), 0

    @contextmanager
    def late(made: Sessions) -> Iterator[Session]:
        nonlocal opened
        opened += 1
        if opened == 2:  # the claim is written, nothing is read yet
            ingest(sessions, run_id, HEALTHY, 12, 14)
        with transaction(made) as session:
            yield session

    monkeypatch.setattr(worker.refit, "transaction", late)
    refit(sessions, settings, run_id, START)
    assert [f.points for f in forecasts(sessions, run_id)] == [14]
    assert run_of(sessions, run_id).dirty_at is None
    with sessions() as session:
        assert enqueued(session, REFIT_TASK) == []


def test_a_run_is_not_refitted_more_often_than_asked_but_comes_back(sessions: Sessions, settings: Settings) -> None:
    settings.refit_every_s = 10.0
    run_id = start_run(sessions)
    refit(sessions, settings, run_id, START)
    ingest(sessions, run_id, HEALTHY, 12, 13)
    refit(sessions, settings, run_id, START + timedelta(seconds=9))
    assert len(forecasts(sessions, run_id)) == 1
    with sessions() as session:
        message = session.scalars(select(OutboxMessage).where(OutboxMessage.task == REFIT_TASK)).one()
    assert (message.args, message.not_before) == ([run_id], START + timedelta(seconds=10))
    refit(sessions, settings, run_id, START + timedelta(seconds=10))
    assert len(forecasts(sessions, run_id)) == 2


@pytest.mark.parametrize(("back_s", "forecasts_then"), [(5, 1), (3600, 2)])
def test_a_clock_that_was_set_back_holds_no_refit_up(
    back_s: float, forecasts_then: int, sessions: Sessions, settings: Settings
) -> None:
    """By seconds it may be another machine's, which is to rest as well; by an hour it was set."""
    run_id = start_run(sessions)
    refit(sessions, settings, run_id, START + timedelta(hours=2))
    ingest(sessions, run_id, HEALTHY, 12, 13)
    refit(sessions, settings, run_id, START + timedelta(hours=2, seconds=-back_s))
    assert len(forecasts(sessions, run_id)) == forecasts_then


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


def test_ingest_does_not_wait_while_a_refit_reads(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(sessions)

    def read_and_look(session: Session, run: Run, ours: Sequence[Point]) -> list[PastRun]:
        with sessions.begin() as other:
            free = select(Run.id).where(Run.id == run_id).with_for_update(skip_locked=True)
            assert other.scalars(free).all() == [run_id]
        return past_runs(session, run, ours)

    monkeypatch.setattr(worker.refit, "past_runs", read_and_look)
    refit(sessions, settings, run_id, START)
    assert len(forecasts(sessions, run_id)) == 1


def test_a_fit_that_fails_is_said_in_the_runs_history_and_waits_for_the_next_evaluation(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run_id = start_run(sessions)

    def fail() -> None:
        raise ZeroDivisionError("by nothing at /srv/secrets")

    around_assess(monkeypatch, fail)
    refit(sessions, settings, run_id, START)
    run = run_of(sessions, run_id)
    assert (run.dirty_at, run.fit_lease) == (None, None)
    ingest(sessions, run_id, HEALTHY, 12, 13)
    refit(sessions, settings, run_id, START + timedelta(seconds=1))
    with sessions() as session:
        (event,) = events(session, run, "forecast.failed")  # once, though both failed
    assert event.reason == f"The fit failed unexpectedly; the worker's log says why, at {run_id}. It is tried again."
    (line, _) = [record for record in caplog.records if run_id in record.getMessage()]
    assert line.exc_text is not None
    assert "by nothing at /srv/secrets" in line.exc_text, "the words of the failure are in the log only"
    monkeypatch.undo()
    ingest(sessions, run_id, HEALTHY, 13, 14)
    refit(sessions, settings, run_id, START + timedelta(seconds=2))
    assert len(forecasts(sessions, run_id)) == 1


def test_a_fit_that_takes_too_long_is_tried_again_and_not_held_against_the_curve(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(sessions)

    def too_long(*_: object) -> None:
        raise SoftTimeLimitExceeded

    with monkeypatch.context() as slow:
        slow.setattr(worker.refit, "assess", too_long)
        refit(sessions, settings, run_id, START)
    later = START + worker.refit.PUT_OFF
    refit(sessions, settings, run_id, later - timedelta(seconds=1))  # not before it is due
    assert forecasts(sessions, run_id) == []
    with sessions() as session:
        run = session.get_one(Run, run_id)
        assert run.dirty_at is not None
        assert run_view(session, run).sentence.endswith("(The fit took too long; it is tried again in 5 minutes).")
        assert events(session, run, UNFITTED) == []
        (event,) = events(session, run, "forecast.waiting")  # by which open pages learn of it
        assert event.reason == "The fit took too long; it is tried again in 5 minutes."
    refit(sessions, settings, run_id, later)
    assert len(forecasts(sessions, run_id)) == 1
    assert run_of(sessions, run_id).unfitted is None


def test_evaluations_that_are_no_curve_are_said_in_the_runs_history(sessions: Sessions, settings: Settings) -> None:
    run_id = start_run(sessions, HEALTHY + 1.0)
    refit(sessions, settings, run_id, START)
    with sessions() as session:
        (event,) = events(session, run_of(sessions, run_id), "forecast.failed")
    assert event.reason is not None
    assert "reward" in event.reason
    assert forecasts(sessions, run_id) == []


def test_a_curve_that_was_looked_at_and_is_too_short_says_so_in_the_runs_history(
    sessions: Sessions, settings: Settings
) -> None:
    """An open page refreshes by it: until then it says that the evaluations are waiting to be fitted."""
    run_id = start_run(sessions, points=3)
    refit(sessions, settings, run_id, START)
    with sessions() as session:
        run = session.get_one(Run, run_id)
        (event,) = events(session, run, "forecast.waiting")
        assert event.reason == "Evaluations so far: 3; a forecast takes 4."
        assert run_view(session, run).sentence.endswith("no forecast yet, the curve is too short.")
    ingest(sessions, run_id, HEALTHY, 3, 4)
    refit(sessions, settings, run_id, START + timedelta(seconds=1))
    with sessions() as session:
        assert len(events(session, session.get_one(Run, run_id), "forecast.waiting")) == 1


def test_no_transaction_is_open_during_the_fit(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(sessions)

    def look() -> None:
        with sessions.begin() as session:
            free = select(Run.id).where(Run.id == run_id).with_for_update(skip_locked=True)
            assert session.scalars(free).all() == [run_id]
            mine = text(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'"
            )
            assert session.scalar(mine) == 0

    around_assess(monkeypatch, look)
    refit(sessions, settings, run_id, START)
    assert len(forecasts(sessions, run_id)) == 1


def test_why_a_curve_cannot_be_fitted_is_kept_until_it_can(sessions: Sessions, settings: Settings) -> None:
    with sessions.begin() as session:
        run = make_run(session)
        add_evaluations(session, run, [3.0] * 12, HEALTHY[:12])
        run.dirty_at, run.last_reward = START, 0.42
        run_id = run.id

    def sentence() -> str:
        with sessions() as session:
            return run_view(session, session.get_one(Run, run_id)).sentence

    refit(sessions, settings, run_id, START)
    why = (
        "compute: 4 evaluations whose compute rises are needed, got 1 of 12; report with each the compute spent so far"
    )
    assert run_of(sessions, run_id).unfitted == why
    assert sentence() == f"Pass rate 0.42; no forecast ({why})."
    with sessions() as session:
        (event,) = session.scalars(select(Event).where(Event.run_id == run_id, Event.kind == "forecast.failed"))
    assert event.reason == why

    with sessions.begin() as session:
        add_evaluations(session, session.get_one(Run, run_id), COMPUTE[5:20], HEALTHY[5:20], first_step=1000)
        session.get_one(Run, run_id).dirty_at = START + timedelta(minutes=1)
    refit(sessions, settings, run_id, START + timedelta(minutes=1))
    assert run_of(sessions, run_id).unfitted is None
    assert "no forecast" not in sentence()
