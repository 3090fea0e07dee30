"""The sweep: what the broker lost is rung again, and what is old is put away."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from server.access.models import IdempotencyKey, Token
from server.access.service import authenticate, mint
from server.alerts.models import TEST, Channel, Delivery
from server.alerts.service import open_alert
from server.database import new_id
from server.events.models import OutboxMessage
from server.events.outbox import enqueue
from server.runs.models import Run
from server.sweeps.comparisons import ask_for_comparison
from server.sweeps.models import SweepComparison
from tests.server.forecasts.seeds import make_sweep
from tests.worker.harness import World


def test_a_launch_whose_ring_was_lost_is_rung_again(world: World):
    world.add_run()
    (attempt_id,) = world.admit()
    assert world.sweep_up() == 0, "the first ring may be under way"
    world.wait(5)
    world.sweep_up()
    assert world.bell.take() == [("worker.tasks.launch", (attempt_id,))]
    world.launch(attempt_id)
    assert world.sweep_up() == 0


def test_a_launch_in_a_workers_hands_is_left_alone_until_the_lease_runs_out(world: World):
    world.ray.hang = world.ray.blind = True
    world.add_run()
    (attempt_id,) = world.admit()
    world.wait(5)

    def sweep_meanwhile(_: str) -> None:
        assert world.sweep_up() == 0
        world.bell.rung.append(("looked", ()))

    world.ray.before_answer = sweep_meanwhile
    world.launch(attempt_id)
    assert world.bell.take() == [("looked", ())]


def test_a_dirty_run_that_nobody_refits_is_rung(world: World):
    run = world.add_run(dirty_at=world.now)
    world.wait(5)
    world.sweep_up()
    assert world.bell.take() == [("worker.tasks.refit", (run,))]
    with world.sessions.begin() as session:
        session.get_one(Run, run).fit_lease_expires_at = world.now + timedelta(seconds=60)
    assert world.sweep_up() == 0
    world.wait(60)
    assert world.sweep_up() == 1


def test_a_run_that_reports_all_the_time_is_rung_too_and_whose_forecast_is_oldest_comes_first(world: World):
    """Its `dirty_at` never rests, and with its first ring lost nobody else would ask."""
    fitted = world.now
    newer, older = (world.add_run(fitted_at=fitted - timedelta(seconds=back)) for back in (0, 10))
    for _ in range(30):
        world.wait(1)
        with world.sessions.begin() as session:
            for run in (newer, older):
                session.get_one(Run, run).dirty_at = world.now
        if world.now < fitted + timedelta(seconds=20):
            assert world.sweep_up() == 0, "its forecast is young, and a ring may be under way"
    world.sweep_up()
    assert world.bell.take()[-2:] == [("worker.tasks.refit", (older,)), ("worker.tasks.refit", (newer,))]


def test_a_sweep_that_nobody_compares_is_rung_once_its_last_comparison_has_rested(world: World):
    with world.sessions.begin() as session:
        sweep = make_sweep(session)
        ask_for_comparison(session, sweep.id, world.now)
        row = session.get_one(SweepComparison, sweep.id)
        row.not_before = world.now + timedelta(seconds=20)
    world.wait(24)
    assert world.sweep_up() == 0, "the first ring may be under way"
    world.wait(1)
    world.sweep_up()
    assert world.bell.take() == [("worker.tasks.compare", (sweep.id,))]
    with world.sessions.begin() as session:
        session.get_one(SweepComparison, sweep.id).lease_expires_at = world.now + timedelta(seconds=60)
    assert world.sweep_up() == 0


def test_a_delivery_that_is_due_is_rung(world: World):
    run_id = world.add_run()
    with world.sessions.begin() as session:
        channel = Channel(name="ops", kind="webhook", url="http://127.0.0.1:9/", secret="whsec_x")
        session.add(channel)
        session.flush()
        run = session.get_one(Run, run_id)
        open_alert(session, run, kind="run_failed", level="ALERT", title="t", text="t", now=world.now)
    with world.sessions.begin() as session:
        delivery = session.scalars(select(Delivery)).one()
        delivery.not_before = world.now + timedelta(seconds=60)
    world.wait(60)
    assert world.sweep_up() == 0
    world.wait(5)
    world.sweep_up()
    assert world.bell.take() == [("worker.tasks.deliver", (delivery.id,))]


def test_with_the_broker_down_the_sweep_goes_on_to_tidy(world: World):
    world.add_run(dirty_at=world.now)
    with world.sessions.begin() as session:
        enqueue(session, "worker.tasks.admit", not_before=world.now)
    world.dispatch()
    world.bell.down = True
    world.wait(2 * 86400)
    assert world.sweep_up() == 0
    with world.sessions() as session:
        assert session.scalar(select(func.count()).select_from(OutboxMessage)) == 0


def test_published_messages_go_after_a_day_and_others_stay(world: World):
    with world.sessions.begin() as session:
        enqueue(session, "worker.tasks.admit", not_before=world.now)
        later = world.now + timedelta(days=9)
        session.add(OutboxMessage(task="worker.tasks.launch", args=["later"], created_at=world.now, not_before=later))
    world.dispatch()
    world.wait(86399)
    world.sweep_up()
    with world.sessions() as session:
        assert session.scalar(select(func.count()).select_from(OutboxMessage)) == 2
    world.wait(2)
    world.sweep_up()
    assert world.outbox() == [("worker.tasks.launch", ["later"])]


def test_tokens_of_superseded_attempts_run_out_after_a_grace(world: World):
    run = world.launched()
    secret = world.ray.jobs[f"{run}-a1"]["runtime_env"]["env_vars"]["FORECURVE_TOKEN"]
    with world.sessions.begin() as session:
        session.get_one(Run, run).attempt = 2
    world.sweep_up()
    with world.sessions() as session:
        assert authenticate(session, secret, world.now).attempt == 1
        token = session.scalars(select(Token).where(Token.run_id == run)).one()
    assert token.expires_at == world.now + timedelta(hours=1)


def test_dead_tokens_go_and_living_and_peoples_tokens_stay(world: World):
    with world.sessions.begin() as session:
        day = timedelta(days=1)
        mint(session, kind="ingest", name="dead", scopes=["ingest"], now=world.now - 4 * day, lifetime=day)
        mint(session, kind="ingest", name="recent", scopes=["ingest"], now=world.now - 2 * day, lifetime=day)
        mint(session, kind="ingest", name="living", scopes=["ingest"], now=world.now)
        mint(session, kind="api", name="a person's", scopes=["read"], now=world.now - 9 * day, lifetime=day)
    world.sweep_up()
    with world.sessions() as session:
        assert set(session.scalars(select(Token.name))) == {"recent", "living", "a person's"}


def test_idempotency_keys_go_after_thirty_days_and_then_their_token(world: World):
    with world.sessions.begin() as session:
        long_ago = world.now - timedelta(days=4)
        token, _ = mint(
            session, kind="ingest", name="dead", scopes=["ingest"], now=long_ago, lifetime=timedelta(days=1)
        )
        fresh = IdempotencyKey(
            token_id=token.id, key="k", request_hash="h", status=200, body=b"{}", created_at=world.now
        )
        session.add(fresh)
    world.wait(30 * 86400 - 1)
    world.sweep_up()
    with world.sessions() as session:
        assert session.scalar(select(func.count()).select_from(Token)) == 1
    world.wait(2)
    world.sweep_up()
    with world.sessions() as session:
        assert session.scalar(select(func.count()).select_from(Token)) == 0


def test_tests_of_a_channel_go_after_a_day_but_for_the_newest(world: World):
    run_id = world.add_run()
    with world.sessions.begin() as session:
        channels = [Channel(name=name, kind="webhook", url="http://127.0.0.1:9/", secret="whsec_x") for name in "ab"]
        session.add_all(channels)
        session.flush()
        run = session.get_one(Run, run_id)
        open_alert(session, run, kind="run_failed", level="ALERT", title="t", text="t", now=world.now)
        alerts = set(session.scalars(select(Delivery.id)))
        tests = [_test_message(session, channel, world, status) for channel in channels for status in TESTED]
    world.wait(86399)
    world.sweep_up()
    with world.sessions() as session:
        assert set(session.scalars(select(Delivery.id))) == alerts | set(tests)
    world.wait(2)
    world.sweep_up()
    waiting, newest = tests[1::3], tests[2::3]
    with world.sessions() as session:
        assert set(session.scalars(select(Delivery.id))) == alerts | {*waiting, *newest}


TESTED = ("delivered", "pending", "failed")


def _test_message(session: Session, channel: Channel, world: World, status: str) -> str:
    test = Delivery(id=new_id("dlv"), channel_id=channel.id, level="ALERT", event=TEST, status=status)
    test.created_at = world.now
    test.not_before = world.now + timedelta(days=9)
    session.add(test)
    session.flush()
    return test.id
