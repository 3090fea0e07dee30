"""A test of a channel goes the way of an alert: signed, by the same rules, written down; but it is tried once."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.channels import send_test
from server.alerts.models import Delivery
from server.alerts.telling import DELIVER_TASK
from server.events.models import Event
from server.settings import Settings
from tests.server.forecasts.seeds import SECRET, START, enqueued, make_channel
from tests.worker.receiver import receiving, settings_of_delivery
from worker.notify import deliver, sign

Sessions = sessionmaker[Session]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of_delivery(tmp_path)


def asked_for(sessions: Sessions, url: str, kind: str = "webhook", name: str = "ops") -> str:
    """The id of the pending test of a channel at `url`."""
    with sessions.begin() as session:
        channel = make_channel(session, url, kind)
        channel.name = name
        return send_test(session, channel.id, actor="a person", now=START).id


def row(sessions: Sessions, delivery_id: str) -> Delivery:
    with sessions() as session:
        return session.get_one(Delivery, delivery_id)


def verified(received: tuple[str, dict[str, str], bytes]) -> Any:
    _, headers, body = received
    signature = sign(SECRET, headers["webhook-id"], int(headers["webhook-timestamp"]), body)
    assert headers["webhook-signature"] == signature
    return json.loads(body)


def test_a_webhook_gets_a_signed_message_that_says_it_is_a_test(sessions: Sessions, settings: Settings) -> None:
    with receiving((202, {}, b"thank you")) as receiver:
        delivery = asked_for(sessions, receiver.url)
        deliver(sessions, settings, delivery, START)
    (received,) = receiver.got
    message = verified(received)
    assert received[1]["webhook-id"] == delivery
    assert (message["type"], message["timestamp"]) == ("channel.test", START.isoformat())
    assert message["data"]["channel"]["name"] == "ops"
    assert message["data"]["url"] == "https://fc.example/alerts"
    done = row(sessions, delivery)
    assert (done.status, done.tries, done.response_status, done.response_text) == ("delivered", 1, 202, "thank you")
    with sessions() as session:
        event = session.scalars(select(Event).where(Event.kind == "delivery")).one()
    assert (event.to_state, event.run_id) == ("delivered", None)
    assert event.evidence == {"delivery": delivery, "tries": 1, "channel": done.channel_id}


def test_slack_gets_block_kit_whose_channel_name_cannot_mention(sessions: Sessions, settings: Settings) -> None:
    with receiving() as receiver:
        deliver(sessions, settings, asked_for(sessions, receiver.url, "slack", "<!channel> & co"), START)
    message = verified(receiver.got[0])
    header, section, actions, _ = message["blocks"]
    assert message["text"] == header["text"]["text"] == "Test message"
    assert "&lt;!channel&gt; &amp; co" in section["text"]["text"]
    assert actions["elements"][0]["url"] == "https://fc.example/alerts"


@pytest.mark.parametrize("answer", [(500, {}, b"broken"), (404, {}, b"no_service")])
def test_what_is_not_taken_has_failed_at_once_with_the_answer(
    sessions: Sessions, settings: Settings, answer: Any
) -> None:
    with receiving(answer) as receiver:
        delivery = asked_for(sessions, receiver.url)
        for minutes in range(3):
            deliver(sessions, settings, delivery, START + timedelta(minutes=minutes))
    assert len(receiver.got) == 1
    failed = row(sessions, delivery)
    assert (failed.status, failed.response_status, failed.response_text) == ("failed", answer[0], answer[2].decode())
    with sessions() as session:
        assert enqueued(session, DELIVER_TASK) == [[delivery]]


def test_a_private_address_is_refused_as_for_an_alert(sessions: Sessions, settings: Settings) -> None:
    settings.allow_private_webhooks = False
    delivery = asked_for(sessions, "https://innocent.example/hook")
    deliver(sessions, settings, delivery, START, resolve=lambda _, __: ["10.0.0.8"])
    refused = row(sessions, delivery)
    assert refused.status == "failed"
    assert (refused.response_text or "").startswith("Not sent: innocent.example")


def test_a_test_that_killed_its_worker_is_given_up_and_not_sent_again(sessions: Sessions, settings: Settings) -> None:
    def dies(_: str, __: int) -> list[str]:
        raise KeyboardInterrupt

    with receiving() as receiver:
        delivery = asked_for(sessions, f"http://hooks.internal:{receiver.port}/hook")
        with pytest.raises(KeyboardInterrupt):
            deliver(sessions, settings, delivery, START, resolve=dies)
        deliver(sessions, settings, delivery, START + timedelta(seconds=settings.lease_s))
    assert receiver.got == []
    given_up = row(sessions, delivery)
    assert (given_up.status, given_up.response_text) == ("failed", "Given up: the try did not end.")
