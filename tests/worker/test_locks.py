"""Turns: one process at a time, and none for ever."""

from __future__ import annotations

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

import worker.locks
from tests.worker.harness import World
from worker.locks import only_one, wait_for_turn


def test_a_turn_is_one_process_s_until_it_is_given_back(world: World):
    with only_one(world.sessions, "reconcile") as mine, only_one(world.sessions, "reconcile") as theirs:
        assert (mine, theirs) == (True, False)
    with only_one(world.sessions, "reconcile") as mine:
        assert mine


def test_a_process_that_stands_still_loses_its_turn(world: World):
    turn = only_one(world.sessions, "reconcile", held_s=0.1)
    assert turn.__enter__()
    with world.sessions.begin() as another:
        another.execute(text("SET LOCAL lock_timeout = '20s'"))
        wait_for_turn(another, "reconcile")
    with pytest.raises(OperationalError):
        turn.__exit__(None, None, None)


def test_a_connection_that_held_a_turn_is_as_patient_as_before(world: World):
    with world.sessions() as session:
        before = session.scalar(text("SHOW idle_session_timeout"))
    with only_one(world.sessions, "reconcile"):
        pass
    with world.sessions() as session:
        assert session.scalar(text("SHOW idle_session_timeout")) == before


@pytest.mark.timeout(60)
def test_a_turn_whose_end_is_cut_short_goes_with_its_connection(world: World, monkeypatch: pytest.MonkeyPatch):
    def out_of_time(_: str) -> None:
        raise SoftTimeLimitExceeded

    turn = only_one(world.sessions, "reconcile")
    assert turn.__enter__()
    with monkeypatch.context() as late:
        late.setattr(worker.locks, "text", out_of_time)
        with pytest.raises(SoftTimeLimitExceeded):
            turn.__exit__(None, None, None)
    held = text("SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database AND datname = current_database()"
                " WHERE locktype = 'advisory'")  # fmt: skip
    with world.sessions() as session:  # of the pool, so it may be the very connection
        while session.scalar(held):  # Postgres notices a moment later
            session.rollback()
