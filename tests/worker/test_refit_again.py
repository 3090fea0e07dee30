"""A fit that fails by no fault of the curve is tried again: the evaluations of a run that is over are its last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

import worker.refit
from server.alerts.models import Alert
from server.alerts.service import open_alert
from server.events.models import OutboxMessage
from server.runs.models import Run
from server.runs.views import run_view
from server.settings import Settings
from tests.server.forecasts.seeds import START, enqueued, events
from tests.worker.harness import World
from tests.worker.refitting import HEALTHY, Sessions, forecasts, ingest, run_of, start_run
from worker.refit import REFIT_TASK, UNFITTED, refit
from worker.tries import MOST_TRIES

WAITS = [timedelta(minutes=5), timedelta(minutes=20), timedelta(minutes=80), timedelta(hours=5, minutes=20),
         timedelta(hours=12)]  # fmt: skip


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def fail(*_: object) -> None:
        raise OSError("no space left on /srv/data")

    with monkeypatch.context() as full:
        full.setattr(worker.refit, "assess", fail)
        yield


def rings(sessions: Sessions, run_id: str) -> list[datetime]:
    """When refits of the run are asked for, oldest first."""
    asked = select(OutboxMessage).where(OutboxMessage.task == REFIT_TASK).order_by(OutboxMessage.id)
    with sessions() as session:
        return [message.not_before for message in session.scalars(asked) if message.args == [run_id]]


def test_a_fit_that_fails_is_tried_again_at_growing_distances_and_then_given_up(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, now, due = start_run(sessions, status="succeeded"), START, [START]
    with full_disk(monkeypatch):
        refit(sessions, settings, run_id, now)
        for number, wait in enumerate(WAITS, start=1):
            assert (run_of(sessions, run_id).refit_tries, rings(sessions, run_id)) == (number, [*due[1:], now + wait])
            refit(sessions, settings, run_id, now + wait - timedelta(seconds=1))
            assert run_of(sessions, run_id).refit_tries == number, "not before it is due"
            now += wait
            due.append(now)
            refit(sessions, settings, run_id, now)
    run = run_of(sessions, run_id)
    assert (run.refit_tries, run.refit_at, rings(sessions, run_id)) == (MOST_TRIES, None, due[1:])
    given_up = f"The fit failed unexpectedly; the worker's log says why, at {run_id}. It was tried 6 times."
    assert run.unfitted == given_up
    with sessions() as session:
        assert [event.reason for event in events(session, run, UNFITTED)][-1] == given_up
        assert len(events(session, run, UNFITTED)) == 2, "a try that changes nothing is no event"
    refit(sessions, settings, run_id, now + timedelta(days=30))
    assert forecasts(sessions, run_id) == []


def test_a_try_that_works_ends_it(sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = start_run(sessions, status="succeeded")
    with full_disk(monkeypatch):
        refit(sessions, settings, run_id, START)
        refit(sessions, settings, run_id, START + WAITS[0])
    now = START + WAITS[0] + WAITS[1]
    refit(sessions, settings, run_id, now)
    run = run_of(sessions, run_id)
    assert (run.refit_tries, run.refit_at, run.unfitted) == (0, None, None)
    refit(sessions, settings, run_id, now + timedelta(days=1))
    assert len(forecasts(sessions, run_id)) == 1


def test_new_evaluations_are_fitted_at_once_and_begin_the_tries_anew(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(sessions)
    with full_disk(monkeypatch):
        refit(sessions, settings, run_id, START)
        refit(sessions, settings, run_id, START + WAITS[0])
        later = START + WAITS[0] + timedelta(minutes=1)
        ingest(sessions, run_id, HEALTHY, 12, 13, later)
        refit(sessions, settings, run_id, later)
    run = run_of(sessions, run_id)
    assert (run.refit_tries, run.refit_at) == (1, later + WAITS[0])


def test_a_run_that_is_over_says_that_its_last_evaluations_are_in_no_forecast(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(sessions, status="succeeded")
    refit(sessions, settings, run_id, START)
    ingest(sessions, run_id, HEALTHY, 12, 13, START)
    with full_disk(monkeypatch):
        refit(sessions, settings, run_id, START + timedelta(minutes=1))
    with sessions() as session:
        sentence = run_view(session, session.get_one(Run, run_id)).sentence
    assert sentence.startswith("Succeeded")
    assert (
        f"Newer evaluations are not in it (The fit failed unexpectedly; the worker's log says why, at {run_id}"
        in sentence
    )


def test_two_workers_that_are_rung_for_the_same_try_make_one(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(sessions)
    with full_disk(monkeypatch):
        refit(sessions, settings, run_id, START)
        for _ in range(2):
            refit(sessions, settings, run_id, START + WAITS[0])
    assert run_of(sessions, run_id).refit_tries == 2


def test_a_curve_that_is_at_fault_is_not_tried_again(sessions: Sessions, settings: Settings) -> None:
    run_id = start_run(sessions, HEALTHY + 1.0)
    refit(sessions, settings, run_id, START)
    run = run_of(sessions, run_id)
    assert (run.refit_tries, run.refit_at) == (0, None)
    with sessions() as session:
        assert enqueued(session, REFIT_TASK) == []


def test_a_try_whose_ring_was_lost_is_rung_by_the_sweep(world: World) -> None:
    run = world.add_run(status="succeeded", fitted_at=world.now, refit_tries=2, refit_at=world.now + WAITS[1])
    world.wait(WAITS[1].total_seconds() + 4)
    assert world.sweep_up() == 0, "its ring may be under way"
    world.wait(1)
    assert world.sweep_up() == 1
    assert world.bell.take() == [(REFIT_TASK, (run,))]
    with world.sessions.begin() as session:
        session.get_one(Run, run).fit_lease_expires_at = world.now + timedelta(seconds=60)
    assert world.sweep_up() == 0, "it is under way"


Times = tuple[datetime | None, ...]


class Died(BaseException):
    """In place of a signal that ends the worker: nobody writes down that its fit failed."""


def deaths_of(work: Callable[[datetime], None], began: datetime, times: Callable[[], Times]) -> list[datetime]:
    """When workers end, all of which do: at `began` and whenever something is due after that."""
    deaths: list[datetime] = []
    now: datetime | None = began
    while now:
        try:
            work(now)
        except Died:
            deaths.append(now)
        now = min((time for time in times() if time is not None and time > now), default=None)
    return deaths


def die(*_: object) -> None:
    raise Died


def test_a_fit_that_ends_its_worker_each_time_is_put_off_and_then_given_up(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(sessions, status="succeeded")
    with sessions.begin() as session:
        words = {"kind": "below_forecast", "level": "ALERT", "title": "fell", "text": "It fell.", "now": START}
        open_alert(session, session.get_one(Run, run_id), at_compute=1.0, attempt=1, **words)

    def times() -> Times:
        run = run_of(sessions, run_id)
        return run.fit_lease_expires_at, run.refit_at

    with monkeypatch.context() as deadly:
        deadly.setattr(worker.refit, "assess", die)
        deaths = deaths_of(lambda now: refit(sessions, settings, run_id, now), START, times)
    assert len(deaths) == MOST_TRIES
    assert deaths[1] - START == timedelta(seconds=settings.lease_s), "once is no sign of a fault"
    assert all(later - earlier >= wait for earlier, later, wait in zip(deaths[1:], deaths[2:], WAITS[1:], strict=False))
    run, now = run_of(sessions, run_id), deaths[-1] + timedelta(hours=1)
    assert (run.refit_tries, run.refit_at, run.dirty_at) == (MOST_TRIES, None, None)
    assert run.unfitted is not None
    assert run.unfitted.endswith("as when memory runs out. It was tried 6 times.")
    with sessions() as session:
        assert session.scalars(select(Alert)).one().resolved_at is not None, "the run is over, and nobody will judge it"
    ingest(sessions, run_id, HEALTHY, 12, 13, now)
    refit(sessions, settings, run_id, now)
    run = run_of(sessions, run_id)
    assert (run.refit_tries, run.unfitted, len(forecasts(sessions, run_id))) == (0, None, 1)


def test_a_clock_that_was_set_back_holds_up_no_try(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(sessions)
    with full_disk(monkeypatch):
        refit(sessions, settings, run_id, START)
    refit(sessions, settings, run_id, START - timedelta(days=2))
    assert len(forecasts(sessions, run_id)) == 1
