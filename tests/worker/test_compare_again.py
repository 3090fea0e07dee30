"""A comparison that fails by no fault of its runs is tried again: no forecast asks for another when a sweep is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

import worker.compare
from server.events.models import Event, OutboxMessage
from server.settings import Settings
from server.sweeps.comparisons import COMPARE_TASK, ask_for_comparison
from server.sweeps.models import SweepComparison
from tests.server.forecasts.seeds import make_sweep
from tests.worker.harness import World
from tests.worker.refitting import Sessions
from tests.worker.sharing import PAUSED, begin, states
from tests.worker.test_compare import LATER, row_of, start_sweep
from tests.worker.test_refit_again import WAITS, Died, Times, deaths_of, die
from worker.compare import COMPARED, compare_sweep
from worker.tries import MOST_TRIES


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def fail(*_: object) -> None:
        raise OSError("no space left on /srv/data")

    with monkeypatch.context() as full:
        full.setattr(worker.compare, "find", fail)
        yield


@contextmanager
def deadly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as killing:
        killing.setattr(worker.compare, "find", die)
        yield


def rings(sessions: Sessions) -> list[datetime]:
    """When comparisons are asked for after the first, oldest first."""
    asked = select(OutboxMessage.not_before).where(OutboxMessage.task == COMPARE_TASK).order_by(OutboxMessage.id)
    with sessions() as session:
        return list(session.scalars(asked))[1:]


def test_a_comparison_that_fails_is_tried_again_at_growing_distances_and_then_given_up(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id = start_sweep(sessions, seeds=1, points=12)
    now, due = LATER, []
    failed = f"The comparison failed unexpectedly; the log says why, at {sweep_id}."
    with full_disk(monkeypatch):
        compare_sweep(sessions, settings, sweep_id, now)
        for number, wait in enumerate(WAITS, start=1):
            due.append(now + wait)
            row = row_of(sessions, sweep_id)
            assert (row.tries, row.dirty_at, row.note) == (number, None, f"{failed} It is tried again.")
            assert rings(sessions) == due
            compare_sweep(sessions, settings, sweep_id, now + wait - timedelta(seconds=1))
            assert row_of(sessions, sweep_id).tries == number, "not before it is due"
            now += wait
            compare_sweep(sessions, settings, sweep_id, now)
    row = row_of(sessions, sweep_id)
    assert (row.tries, row.again_at, row.note) == (MOST_TRIES, None, f"{failed} It was tried 6 times.")
    assert rings(sessions) == due
    with sessions() as session:
        said = list(session.scalars(select(Event.reason).where(Event.kind == COMPARED).order_by(Event.id)))
    assert said == [f"{failed} It is tried again.", f"{failed} It was tried 6 times."]
    compare_sweep(sessions, settings, sweep_id, now + timedelta(days=30))
    assert row_of(sessions, sweep_id).result is None


def test_a_try_that_works_ends_it(sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep_id = start_sweep(sessions, seeds=1, points=12)
    with full_disk(monkeypatch):
        compare_sweep(sessions, settings, sweep_id, LATER)
    compare_sweep(sessions, settings, sweep_id, LATER + WAITS[0])
    row = row_of(sessions, sweep_id)
    assert row.result is not None
    assert (row.tries, row.again_at, row.note) == (0, None, None)
    compare_sweep(sessions, settings, sweep_id, LATER + timedelta(days=1))
    assert row_of(sessions, sweep_id).compared_at == LATER + WAITS[0]


def test_new_forecasts_are_compared_at_once_and_begin_the_tries_anew(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id = start_sweep(sessions, seeds=1, points=12)
    with full_disk(monkeypatch):
        compare_sweep(sessions, settings, sweep_id, LATER)
        compare_sweep(sessions, settings, sweep_id, LATER + WAITS[0])
        later = LATER + WAITS[0] + timedelta(minutes=1)
        with sessions.begin() as session:
            ask_for_comparison(session, sweep_id, later)
        compare_sweep(sessions, settings, sweep_id, later)
    row = row_of(sessions, sweep_id)
    assert (row.tries, row.again_at) == (1, later + WAITS[0])


def test_a_try_whose_ring_was_lost_is_rung_by_the_sweep(world: World) -> None:
    with world.sessions.begin() as session:
        sweep_id = make_sweep(session).id
        session.add(SweepComparison(sweep_id=sweep_id, tries=2, again_at=world.now + WAITS[1]))
    world.wait(WAITS[1].total_seconds() + 4)
    assert world.sweep_up() == 0, "its ring may be under way"
    world.wait(1)
    assert world.sweep_up() == 1
    assert world.bell.take() == [(COMPARE_TASK, (sweep_id,))]
    with world.sessions.begin() as session:
        session.get_one(SweepComparison, sweep_id).lease_expires_at = world.now + timedelta(seconds=60)
    assert world.sweep_up() == 0, "it is under way"


def test_a_comparison_that_ends_its_worker_each_time_is_put_off_and_then_given_up(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id = start_sweep(sessions, seeds=1, points=12)

    def times() -> Times:
        row = row_of(sessions, sweep_id)
        return row.lease_expires_at, row.again_at

    with deadly(monkeypatch):
        deaths = deaths_of(lambda now: compare_sweep(sessions, settings, sweep_id, now), LATER, times)
    row = row_of(sessions, sweep_id)
    assert len(deaths) == row.tries == MOST_TRIES
    assert (row.again_at, row.dirty_at, row.result) == (None, None, None)
    assert row.note is not None
    assert row.note.endswith("as when memory runs out. It was tried 6 times.")


HELD = {"control": PAUSED, "higher": PAUSED}


@pytest.mark.parametrize("broken", [full_disk, deadly])
def test_a_comparison_that_held_runs_wait_for_is_never_given_up(
    sessions: Sessions,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    broken: Callable[[pytest.MonkeyPatch], AbstractContextManager[None]],
) -> None:
    """Held runs report nothing that would ask for another."""
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 5}, **HELD)
    with sessions.begin() as session:
        ask_for_comparison(session, sweep_id, LATER)

    def next_due(now: datetime) -> datetime:
        row = row_of(sessions, sweep_id)
        due = row.lease_expires_at or row.again_at
        assert due is not None
        assert now < due <= now + WAITS[-1], "however often it was tried"
        return due

    now = LATER
    with broken(monkeypatch):
        for _ in range(3 * MOST_TRIES):
            with suppress(Died):
                compare_sweep(sessions, settings, sweep_id, now)
            now = next_due(now)
    assert str(row_of(sessions, sweep_id).note).endswith("It is tried again.")
    compare_sweep(sessions, settings, sweep_id, now)
    if broken is deadly and row_of(sessions, sweep_id).note is not None:  # the last death is noticed only now
        compare_sweep(sessions, settings, sweep_id, next_due(now))
    assert row_of(sessions, sweep_id).note is None
    assert {state[0] for state in states(sessions, runs).values()} == {"run"}, "each has a look to take, and a place"


def test_a_comparison_of_runs_that_are_a_persons_by_now_is_given_up(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = PAUSED | {"allocated": False}
    sweep_id, _ = begin(sessions, {"control": 5, "higher": 5}, control=theirs, higher=theirs)
    with sessions.begin() as session:
        ask_for_comparison(session, sweep_id, LATER)
        row = session.get_one(SweepComparison, sweep_id)
        row.tries, row.dirty_at, row.again_at = MOST_TRIES - 1, None, LATER
    with full_disk(monkeypatch):
        compare_sweep(sessions, settings, sweep_id, LATER)
    row = row_of(sessions, sweep_id)
    assert (row.tries, row.again_at) == (MOST_TRIES, None)
