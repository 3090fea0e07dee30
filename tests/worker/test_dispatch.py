"""From the outbox to the broker: nothing lost, nothing early, and a broker that is down is waited for."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from sqlalchemy import select

from server.events.models import OutboxMessage
from server.events.outbox import enqueue
from tests.at_once import at_once
from tests.worker.harness import World
from worker.dispatch import BATCH, dispatch


def fill(world: World, count: int) -> None:
    with world.sessions.begin() as session:
        for number in range(count):
            enqueue(session, "worker.tasks.refit", f"run_{number}", not_before=world.now)


def test_what_was_committed_is_published_in_order_and_once(world: World):
    fill(world, 3)
    assert world.dispatch() == 3
    assert world.bell.take() == [("worker.tasks.refit", (f"run_{number}",)) for number in range(3)]
    assert world.dispatch() == 0
    assert world.outbox() == []


def test_what_was_rolled_back_is_never_published(world: World):
    with world.sessions() as session:
        enqueue(session, "worker.tasks.admit")
        session.flush()
        session.rollback()
    assert world.dispatch() == 0


def test_what_is_to_wait_waits(world: World):
    with world.sessions.begin() as session:
        enqueue(session, "worker.tasks.launch", "att_1", not_before=world.now + timedelta(seconds=10))
    assert world.dispatch() == 0
    world.wait(10)
    assert world.dispatch() == 1


def test_more_than_a_batch_is_published_at_one_go(world: World):
    fill(world, 2 * BATCH + 1)
    assert world.dispatch() == 2 * BATCH + 1


def test_a_broker_that_is_down_keeps_the_messages_in_the_outbox(world: World):
    fill(world, 5)
    world.bell.down = True
    assert world.dispatch() == 0
    assert len(world.outbox()) == 5
    world.bell.down = False
    world.wait(2)
    assert world.dispatch() == 5


def test_a_broker_that_goes_down_midway_gets_the_rest_later(world: World):
    fill(world, 5)
    world.bell.after = 2
    assert world.dispatch() == 2
    world.bell.after = None
    world.wait(2)
    assert world.dispatch() == 3
    assert sorted(args for _, args in world.bell.rung) == [(f"run_{number}",) for number in range(5)]


def test_a_dispatcher_that_dies_before_it_published_is_made_up_for(world: World):
    fill(world, 1)

    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    with pytest.raises(Killed):
        dispatch(dataclasses.replace(world.context, ring=die), world.now)
    assert world.dispatch() == 0, "another dispatcher has it, as far as anyone can tell"
    world.wait(20)
    assert world.dispatch() == 1


def test_dispatchers_at_once_share_the_work(world: World):
    fill(world, 3 * BATCH)
    at_once(4, world.dispatch)
    published = [args for _, args in world.bell.rung]
    assert len(published) == len(set(published)) == 3 * BATCH
    with world.sessions() as session:
        assert session.scalars(select(OutboxMessage).where(OutboxMessage.published_at.is_(None))).all() == []
