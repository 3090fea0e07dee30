"""Channels that were told of an alert are told when it holds no longer: receivers close what they opened for it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from server.alerts.models import Alert, Channel, Delivery
from server.alerts.service import resolve
from server.settings import Settings
from tests.server.forecasts.seeds import START, make_channel
from tests.worker.receiver import Receiver, receiving, settings_of_delivery
from tests.worker.refitting import COLLAPSING, HEALTHY, Sessions, end, grow, ingest
from tests.worker.test_notify import verified
from tests.worker.test_refit_back import DIPS, TWICE
from tests.worker.test_refit_resumed import resumed
from worker.notify import deliver
from worker.refit import refit

LATER = START + timedelta(days=1)
OPENED, BACK, AGAIN, OVER = "alert.below_forecast", "alert.back", "alert.down_again", "alert.resolved"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of_delivery(tmp_path).model_copy(update={"refit_every_s": 0.0})


def add_channel(sessions: Sessions, url: str, kind: str = "webhook", **columns: Any) -> None:
    with sessions.begin() as session:
        make_channel(session, url, kind, **columns)


def deliver_all(sessions: Sessions, settings: Settings, now: datetime = LATER) -> None:
    """Every pending delivery is tried, the newest first."""
    with sessions() as session:
        pending = select(Delivery.id).where(Delivery.status == "pending").order_by(Delivery.id.desc())
        ids = session.scalars(pending).all()
    for delivery_id in ids:
        deliver(sessions, settings, delivery_id, now)


def go_on(sessions: Sessions, settings: Settings, run_id: str, reward: Any, first: int, last: int) -> None:
    now = START + timedelta(hours=last)
    ingest(sessions, run_id, reward, first, last, now)
    refit(sessions, settings, run_id, now)
    deliver_all(sessions, settings)


def told(receiver: Receiver) -> list[str]:
    return [json.loads(body)["type"] for _, _, body in receiver.got]


def test_that_a_run_is_back_is_told_once_and_its_end_is_no_news_then(sessions: Sessions, settings: Settings) -> None:
    with receiving() as receiver:
        add_channel(sessions, receiver.url)
        run_id = grow(sessions, settings, DIPS, [18, 20, 36])
        deliver_all(sessions, settings)
        add_channel(sessions, receiver.url)  # one that was never told of it is told of no end
        for first, last in ((36, 44), (44, 51)):
            go_on(sessions, settings, run_id, DIPS, first, last)
        end(sessions, settings, run_id, LATER)
        deliver_all(sessions, settings)
    assert told(receiver) == [OPENED, BACK]
    opened, back = (verified(received)["data"] for received in receiver.got)
    assert opened["alert"]["id"] == back["alert"]["id"]
    assert (opened["reason"], opened["alert"]["back_since"]) == (None, None)
    assert back["reason"] == "It has been back within its forecast since 76 GPU-hours."
    assert (back["alert"]["back_since"], back["alert"]["resolved_at"]) == (76.0, None)
    assert len({headers["webhook-id"] for _, headers, _ in receiver.got}) == 2


def test_a_run_that_falls_again_is_told_as_down_and_its_end_too(sessions: Sessions, settings: Settings) -> None:
    with receiving() as receiver:
        add_channel(sessions, receiver.url)
        run_id = grow(sessions, settings, TWICE, [18, 20, 36])
        deliver_all(sessions, settings)
        for first, last in ((36, 43), (43, 51)):
            go_on(sessions, settings, run_id, TWICE, first, last)
        end(sessions, settings, run_id, LATER)
        deliver_all(sessions, settings)
    assert told(receiver) == [OPENED, BACK, AGAIN, OVER]
    over = verified(receiver.got[-1])["data"]
    assert (over["reason"], over["alert"]["resolved_at"]) == ("The run is over.", LATER.isoformat())


def test_a_message_that_it_is_back_and_is_not_sent_yet_is_overtaken_by_the_next_fall(
    sessions: Sessions, settings: Settings
) -> None:
    with receiving() as receiver:
        add_channel(sessions, receiver.url)
        run_id = grow(sessions, settings, TWICE, [18, 20, 36])
        deliver_all(sessions, settings)
        for first, last in ((36, 43), (43, 51)):
            ingest(sessions, run_id, TWICE, first, last, LATER)
            refit(sessions, settings, run_id, LATER)
        deliver_all(sessions, settings)
    assert told(receiver) == [OPENED]


def test_what_a_resume_has_undone_is_told_as_resolved(sessions: Sessions, settings: Settings) -> None:
    with receiving() as receiver:
        add_channel(sessions, receiver.url, "slack")
        run_id = grow(sessions, settings, COLLAPSING, [18, 20, 36])
        deliver_all(sessions, settings)
        resumed(sessions, run_id, HEALTHY, 26, 40, LATER)
        refit(sessions, settings, run_id, LATER)
        deliver_all(sessions, settings)
    message = verified(receiver.got[-1])
    assert message["text"] == "Resolved: no-cispo fell below its forecast"
    header, section, figures, *_ = message["blocks"]
    assert header["text"]["text"] == ":white_check_mark: Resolved: no-cispo fell below its forecast"
    assert section["text"]["text"] == "The run went on from before it, in attempt 2."
    assert "Forecast for now" not in json.dumps(figures)


def test_what_a_person_resolved_is_not_told(sessions: Sessions, settings: Settings) -> None:
    with receiving() as receiver:
        add_channel(sessions, receiver.url)
        run_id = grow(sessions, settings, COLLAPSING, [18, 20, 36])
        deliver_all(sessions, settings)
        with sessions.begin() as session:
            resolve(session, session.scalars(select(Alert.id)).one(), actor="tok_1", now=LATER)
        end(sessions, settings, run_id, LATER)
        deliver_all(sessions, settings)
    assert told(receiver) == [OPENED]


def test_an_end_waits_while_the_beginning_is_to_be_tried_again(sessions: Sessions, settings: Settings) -> None:
    """Else the receiver would open at last what is over."""
    with receiving((500, {}, b""), (200, {}, b"ok")) as receiver:
        add_channel(sessions, receiver.url)
        run_id = grow(sessions, settings, COLLAPSING, [18, 20, 36])
        deliver_all(sessions, settings, START + timedelta(hours=1))
        end(sessions, settings, run_id, LATER)
        for minute in range(2):
            deliver_all(sessions, settings, LATER + timedelta(minutes=minute))
    assert told(receiver) == [OPENED, OPENED, OVER]


def test_a_fall_that_is_told_when_it_is_over_is_told_as_over_too(sessions: Sessions, settings: Settings) -> None:
    with receiving() as receiver:
        add_channel(sessions, receiver.url)
        grow(sessions, settings, DIPS, [18, 20, 51])
        for minute in range(2):
            deliver_all(sessions, settings, LATER + timedelta(minutes=minute))
    assert told(receiver) == [OPENED, BACK]


def test_a_channel_that_never_got_the_alert_or_is_gone_is_told_of_no_end(
    sessions: Sessions, settings: Settings
) -> None:
    with receiving((410, {}, b"gone")) as receiver:
        for _ in range(2):
            add_channel(sessions, receiver.url)
        run_id = grow(sessions, settings, COLLAPSING, [18, 20, 36])
        with sessions.begin() as session:
            refused, left = session.scalars(select(Delivery).order_by(Delivery.id))
            left.status = "delivered"
            session.get_one(Channel, left.channel_id).enabled = False
        deliver(sessions, settings, refused.id, LATER)
        end(sessions, settings, run_id, LATER)
    with sessions() as session:
        assert set(session.scalars(select(Delivery.event))) == {"alert"}
