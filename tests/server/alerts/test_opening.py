"""An alert is opened once per run and kind, raised when it gets worse, and sent to the channels that want its level."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.models import Alert, Delivery
from server.alerts.service import acknowledge, open_alert, resolve
from server.alerts.telling import DELIVER_TASK
from server.runs.models import Run
from tests.server.forecasts.seeds import START, enqueued, events, make_channel, make_run


def say(session: Session, run: Run, level: str = "ALERT", **words: object) -> Alert:
    words = {"kind": "below_forecast", "title": "fell", "text": f"It fell ({level}).", "now": START} | words
    return open_alert(session, run, level=level, **words)  # type: ignore[arg-type]


def test_opening_writes_an_event_and_one_delivery_for_each_channel_that_wants_the_level(session: Session) -> None:
    run = make_run(session)
    every = make_channel(session, "https://a.example", min_level="WARN")
    loud = make_channel(session, "https://b.example", min_level="ALERT")
    make_channel(session, "https://c.example", min_level="WARN", enabled=False)

    alert = say(session, run, "WARN", since_compute=3.0, at_compute=4.0, evidence={"e_value": 21.0})

    deliveries = session.scalars(select(Delivery)).all()
    assert [(d.alert_id, d.channel_id, d.level, d.status) for d in deliveries] == [
        (alert.id, every.id, "WARN", "pending")
    ]
    assert enqueued(session, DELIVER_TASK) == [[deliveries[0].id]]
    (event,) = events(session, run, "alert")
    assert (event.from_state, event.to_state, event.evidence["alert"]) == (None, "WARN", alert.id)
    assert (alert.since_compute, alert.at_compute, alert.evidence) == (3.0, 4.0, {"e_value": 21.0})
    assert loud.id not in {d.channel_id for d in deliveries}


def test_the_same_alert_said_again_changes_nothing(session: Session) -> None:
    run = make_run(session)
    make_channel(session, "https://a.example")
    first = say(session, run, text="It fell.")
    second = say(session, run, text="It fell further.")
    lower = say(session, run, "WARN", text="It is a little low.")
    assert first.id == second.id == lower.id
    assert (lower.text, lower.level) == ("It fell.", "ALERT")
    assert len(enqueued(session, DELIVER_TASK)) == len(events(session, run, "alert")) == 1


def test_a_warning_that_becomes_an_alert_is_raised_and_delivered_anew(session: Session) -> None:
    run = make_run(session)
    make_channel(session, "https://a.example", min_level="WARN")
    warning = say(session, run, "WARN")
    session.scalars(select(Delivery)).one().tries = 1  # it was sent
    acknowledge(session, warning.id, actor="tok_1", now=START)

    raised = say(session, run, "ALERT")

    assert raised.id == warning.id
    assert (raised.level, raised.text, raised.acknowledged_at) == ("ALERT", "It fell (ALERT).", None)
    assert sorted(session.scalars(select(Delivery.level))) == ["ALERT", "WARN"]
    assert [(e.from_state, e.to_state) for e in events(session, run, "alert")] == [(None, "WARN"), ("WARN", "ALERT")]


def test_a_warning_not_sent_yet_is_overtaken_by_the_alert(session: Session) -> None:
    run = make_run(session)
    make_channel(session, "https://a.example", min_level="WARN")
    say(session, run, "WARN")
    say(session, run, "ALERT")
    assert session.scalars(select(Delivery.level)).all() == ["ALERT"]


def test_a_warning_that_waits_for_another_try_is_overtaken_too_and_stays_as_a_trace(session: Session) -> None:
    run = make_run(session)
    make_channel(session, "https://a.example", min_level="WARN")
    say(session, run, "WARN")
    session.scalars(select(Delivery)).one().tries = 1  # the receiver was away
    say(session, run, "ALERT")
    rows = {delivery.level: (delivery.status, delivery.response_text) for delivery in session.scalars(select(Delivery))}
    assert rows == {"WARN": ("failed", "Overtaken: the alert was raised."), "ALERT": ("pending", None)}


@pytest.mark.parametrize(
    ("tries", "left"), [(0, []), (1, [("failed", "Overtaken: a person resolved the alert.")])], ids=["new", "tried"]
)
def test_who_was_not_reached_before_a_person_resolved_it_hears_nothing_any_more(
    session: Session, tries: int, left: list[tuple[str, str]]
) -> None:
    run = make_run(session)
    make_channel(session, "https://a.example")
    alert = say(session, run)
    session.scalars(select(Delivery)).one().tries = tries
    resolve(session, alert.id, actor="tok_1", now=START)
    session.expire_all()
    assert [(row.status, row.response_text) for row in session.scalars(select(Delivery))] == left


def test_other_kinds_other_runs_and_resolved_alerts_do_not_stand_in_the_way(session: Session) -> None:
    run = make_run(session)
    first = say(session, run)
    failed = say(session, run, kind="run_failed")
    other = say(session, make_run(session, "control"))
    first.resolved_at = START + timedelta(minutes=1)
    session.flush()
    again = say(session, run)
    assert len({first.id, failed.id, other.id, again.id}) == 4


def test_workers_that_say_it_at_once_open_one_alert(sessions: sessionmaker[Session]) -> None:
    with sessions.begin() as session:
        run = make_run(session)
        make_channel(session, "https://a.example")
    together, seen = threading.Barrier(4), []

    def worker() -> None:
        with sessions.begin() as session:
            mine = session.get_one(Run, run.id)
            together.wait()
            seen.append(say(session, mine).id)

    threads = [threading.Thread(target=worker) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with sessions() as session:
        assert len(seen) == 4
        assert len(set(seen)) == 1
        assert len(session.scalars(select(Alert)).all()) == len(session.scalars(select(Delivery)).all()) == 1


def test_a_level_that_does_not_exist_is_refused_by_the_table(session: Session) -> None:
    from sqlalchemy.exc import IntegrityError

    run = make_run(session)
    with pytest.raises(IntegrityError):
        say(session, run, "PANIC")
