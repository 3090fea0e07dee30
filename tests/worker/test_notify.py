"""A delivery is signed, sent once, retried with back-off on the clock it is given, and given up in the end."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.models import Delivery
from server.alerts.service import open_alert
from server.alerts.telling import DELIVER_TASK
from server.events.models import Event, OutboxMessage
from server.forecasts.models import Forecast
from server.settings import Settings
from tests.at_once import at_once
from tests.server.forecasts.seeds import SECRET, START, make_channel, make_run
from tests.worker.receiver import receiving, settings_of_delivery
from worker.notify import MAX_TRIES, backoff_s, deliver

Sessions = sessionmaker[Session]
TEXT = "0.31 at 41 GPU-hours, where 0.66 (90 %: 0.63 to 0.70) was forecast; below it since 38 GPU-hours."

ENDING = {"median": 0.771, "lower": 0.763, "upper": 0.779}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of_delivery(tmp_path)


def open_delivery(sessions: Sessions, url: str, kind: str = "webhook", name: str = "no-cispo") -> str:
    """The id of a pending delivery of an ALERT to a channel at `url`."""
    with sessions.begin() as session:
        run = make_run(session, name, last_reward=0.31, last_compute=41.0)
        at_budget = {"compute": 100.0, "calibrated": ENDING, "conformal": {"runs": 9}}
        summary = {"misfit": None, "at_budget": at_budget}
        forecast = Forecast(
            run_id=run.id, at_compute=41.0, at_step=200, points=20, unit="GPU-hours", summary=summary,
            band={}, state={}, sentence="", seconds=0.01,
        )  # fmt: skip
        session.add(forecast)
        session.flush()
        run.forecast_id = forecast.id
        channel = make_channel(session, url, kind)
        alert = open_alert(
            session, run, kind="below_forecast", level="ALERT", title=f"{name} fell below its forecast", text=TEXT,
            now=START, since_compute=38.0, at_compute=41.0,
            evidence={"expected": {"median": 0.66, "lower": 0.63, "upper": 0.70}},
        )  # fmt: skip
        mine = select(Delivery.id).where(Delivery.alert_id == alert.id, Delivery.channel_id == channel.id)
        return str(session.scalars(mine).one())


def row(sessions: Sessions, delivery_id: str) -> Delivery:
    with sessions() as session:
        return session.get_one(Delivery, delivery_id)


def retries(sessions: Sessions, delivery_id: str) -> list[datetime]:
    """When each enqueued retry is due; the first message is the alert's own."""
    with sessions() as session:
        query = select(OutboxMessage).where(OutboxMessage.task == DELIVER_TASK).order_by(OutboxMessage.id)
        return [m.not_before for m in session.scalars(query) if m.args == [delivery_id]][1:]


def verified(received: tuple[str, dict[str, str], bytes]) -> Any:
    """The JSON of a received message, after checking its signature as a receiver would, by the published scheme."""
    _, headers, body = received
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert headers["content-type"] == "application/json"
    return json.loads(body)


def test_a_webhook_gets_a_signed_json_message_and_the_answer_is_kept(sessions: Sessions, settings: Settings) -> None:
    with receiving((202, {}, b"thank you")) as receiver:
        delivery = open_delivery(sessions, receiver.url)
        deliver(sessions, settings, delivery, START + timedelta(seconds=1))
    (received,) = receiver.got
    message = verified(received)
    assert received[1]["webhook-id"] == delivery
    assert received[1]["webhook-timestamp"] == str(int(START.timestamp()) + 1)
    assert message["type"] == "alert.below_forecast"
    assert message["data"]["alert"]["text"] == TEXT
    assert message["data"]["expected"] == {"median": 0.66, "lower": 0.63, "upper": 0.70}
    assert message["data"]["ending"] == {**ENDING, "compute": 100.0, "calibration": "calibrated on 9 past runs"}
    assert message["data"]["url"] == f"https://fc.example/runs/{message['data']['run']['id']}"
    done = row(sessions, delivery)
    assert (done.status, done.tries, done.response_status, done.response_text) == ("delivered", 1, 202, "thank you")
    assert (done.delivered_at, done.lease) == (START + timedelta(seconds=1), None)
    with sessions() as session:
        event = session.scalars(select(Event).where(Event.kind == "delivery")).one()
    assert (event.to_state, event.evidence["delivery"]) == ("delivered", delivery)


def test_slack_gets_block_kit_with_the_figures_and_a_link(sessions: Sessions, settings: Settings) -> None:
    with receiving() as receiver:
        deliver(sessions, settings, open_delivery(sessions, receiver.url, "slack"), START)
    message = verified(receiver.got[0])
    header, section, figures, actions, _ = message["blocks"]
    assert [block["type"] for block in message["blocks"]] == ["header", "section", "section", "actions", "context"]
    assert header["text"]["text"] == ":rotating_light: no-cispo fell below its forecast"
    assert section["text"] == {"type": "mrkdwn", "text": TEXT}
    assert dict(field["text"].split("\n") for field in figures["fields"]) == {
        "*Run*": "no-cispo",
        "*Arm*": "no-cispo",
        "*Pass rate*": "0.31",
        "*Forecast for now*": "0.66 (90 %: 0.63 to 0.70)",
        "*Expected to end at*": "0.771 (90 %: 0.763 to 0.779)",
        "*Since*": "38 GPU-hours",
    }
    assert actions["elements"][0]["url"].startswith("https://fc.example/runs/run_")
    assert message["text"] == "ALERT: no-cispo fell below its forecast"


def test_a_runs_name_can_neither_mention_people_nor_break_slacks_limits(sessions: Sessions, settings: Settings) -> None:
    name = "<!channel> & <https://evil.example|click>" + "x" * 3000
    with receiving() as receiver:
        deliver(sessions, settings, open_delivery(sessions, receiver.url, "slack", name), START)
    message = verified(receiver.got[0])
    assert message["text"].startswith("ALERT: &lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;")
    header, _, figures, *_ = message["blocks"]
    assert len(header["text"]["text"]) <= 150
    shown = figures["fields"][0]["text"]
    assert shown.startswith("*Run*\n&lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;")
    assert len(shown) <= 2000


def test_a_wait_that_is_no_number_is_no_wait(sessions: Sessions, settings: Settings) -> None:
    with receiving((503, {"retry-after": "\N{SUPERSCRIPT TWO}"}, b"busy")) as receiver:
        delivery = open_delivery(sessions, receiver.url)
        deliver(sessions, settings, delivery, START, jitter=lambda: 0.5)
    tried = row(sessions, delivery)
    assert (tried.status, tried.response_status, tried.lease) == ("pending", 503, None)
    assert tried.not_before == START + timedelta(seconds=5)


def test_a_wait_may_be_told_as_a_date(sessions: Sessions, settings: Settings) -> None:
    """Two hours are the most that is waited, whatever a receiver says."""
    with receiving((503, {"retry-after": "Fri, 31 Dec 2100 23:59:59 GMT"}, b"busy")) as receiver:
        delivery = open_delivery(sessions, receiver.url)
        deliver(sessions, settings, delivery, START, jitter=lambda: 0.5)
    assert row(sessions, delivery).not_before == START + timedelta(hours=2)


def test_a_delivery_that_is_over_or_not_due_or_unknown_is_left_alone(sessions: Sessions, settings: Settings) -> None:
    with receiving() as receiver:
        delivery = open_delivery(sessions, receiver.url)
        deliver(sessions, settings, delivery, START - timedelta(seconds=1))
        assert receiver.got == []
        for _ in range(3):
            deliver(sessions, settings, delivery, START)
        deliver(sessions, settings, "dlv_unknown", START)
    assert len(receiver.got) == 1
    assert row(sessions, delivery).tries == 1


def test_two_workers_with_the_same_message_send_it_once(sessions: Sessions, settings: Settings) -> None:
    with receiving() as receiver:
        delivery = open_delivery(sessions, receiver.url)
        at_once(4, lambda: deliver(sessions, settings, delivery, START))
    assert len(receiver.got) == 1


def test_a_failed_try_is_retried_later_with_the_same_id_until_it_is_taken(
    sessions: Sessions, settings: Settings
) -> None:
    with receiving((500, {}, b"broken"), (503, {"retry-after": "600"}, b""), (200, {}, b"ok")) as receiver:
        delivery = open_delivery(sessions, receiver.url)
        now = START
        waits = []
        while row(sessions, delivery).status == "pending":
            deliver(sessions, settings, delivery, now, jitter=lambda: 0.5)
            after = row(sessions, delivery)
            if after.status == "pending":
                waits.append((after.not_before - now).total_seconds())
                deliver(sessions, settings, delivery, after.not_before - timedelta(seconds=1))  # too early: not sent
                now = after.not_before
    assert waits == [5.0, 600.0]
    assert len(receiver.got) == 3
    assert len({headers["webhook-id"] for _, headers, _ in receiver.got}) == 1
    assert len({headers["webhook-signature"] for _, headers, _ in receiver.got}) == 3
    for received in receiver.got:
        verified(received)
    assert len(retries(sessions, delivery)) == 2
    assert row(sessions, delivery).tries == 3


def test_after_eight_tries_it_is_given_up_with_the_last_answer_and_an_event(
    sessions: Sessions, settings: Settings
) -> None:
    with receiving((500, {}, b"x" * 5000 + b"\x00")) as receiver:
        delivery = open_delivery(sessions, receiver.url)
        for hour in range(12):
            deliver(sessions, settings, delivery, START + timedelta(hours=3 * hour))
    assert len(receiver.got) == MAX_TRIES == 8
    given_up = row(sessions, delivery)
    assert (given_up.status, given_up.response_status, given_up.response_text) == ("failed", 500, "x" * 2048)
    with sessions() as session:
        event = session.scalars(select(Event).where(Event.kind == "delivery")).one()
    assert (event.to_state, event.evidence["tries"]) == ("failed", 8)
    assert given_up.given_up_at == START + timedelta(hours=21)


def test_a_try_that_killed_its_worker_counts_and_is_taken_over_when_the_lease_ends(
    sessions: Sessions, settings: Settings
) -> None:
    def dies(_: str, __: int) -> list[str]:
        raise KeyboardInterrupt

    with receiving() as receiver:
        delivery = open_delivery(sessions, f"http://hooks.internal:{receiver.port}/hook")
        with pytest.raises(KeyboardInterrupt):
            deliver(sessions, settings, delivery, START, resolve=dies)
        resolve = lambda _, __: ["127.0.0.1"]  # noqa: E731
        deliver(sessions, settings, delivery, START + timedelta(seconds=settings.lease_s - 1), resolve=resolve)
        assert receiver.got == []
        deliver(sessions, settings, delivery, START + timedelta(seconds=settings.lease_s), resolve=resolve)
    assert len(receiver.got) == 1
    assert row(sessions, delivery).tries == 2


@pytest.mark.parametrize(
    ("answer", "status", "tries_after_two"),
    [((410, {}, b"gone"), "failed", 1), ((302, {"location": "http://127.0.0.1:1/"}, b""), "pending", 2)],
)
def test_gone_is_final_and_a_redirect_is_not_followed(
    sessions: Sessions, settings: Settings, answer: Any, status: str, tries_after_two: int
) -> None:
    with receiving(answer) as receiver:
        delivery = open_delivery(sessions, receiver.url)
        deliver(sessions, settings, delivery, START)
        deliver(sessions, settings, delivery, START + timedelta(hours=1))
    after = row(sessions, delivery)
    assert (after.status, after.tries, after.response_status) == (status, tries_after_two, answer[0])


def test_a_receiver_that_is_not_there_is_a_failed_try_and_no_error(sessions: Sessions, settings: Settings) -> None:
    with receiving() as receiver:
        delivery = open_delivery(sessions, receiver.url)
    deliver(sessions, settings, delivery, START)
    after = row(sessions, delivery)
    assert (after.status, after.tries, after.response_status) == ("pending", 1, None)
    assert after.response_text is not None
    assert "ConnectError" in after.response_text


def test_a_name_that_is_not_known_is_said_so(sessions: Sessions, settings: Settings) -> None:
    def unknown(*_: object) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    delivery = open_delivery(sessions, "https://hooks.example/x")
    deliver(sessions, settings, delivery, START, resolve=unknown)
    tried = row(sessions, delivery)
    said = "No answer: the address of hooks.example is not known (Name or service not known)"
    assert (tried.status, tried.response_text) == ("pending", said)


def test_a_host_that_no_name_can_be_is_a_failed_try_that_says_so(sessions: Sessions, settings: Settings) -> None:
    delivery = open_delivery(sessions, "https://hooks..example/x")
    deliver(sessions, settings, delivery, START)
    tried = row(sessions, delivery)
    assert (tried.status, tried.tries, tried.lease) == ("pending", 1, None)
    assert tried.response_text is not None
    assert "label empty or too long" in tried.response_text


@pytest.mark.parametrize("addresses", [["10.0.0.8"], ["93.184.215.14", "127.0.0.1"], ["169.254.169.254"], ["::1"], []])
def test_a_public_name_that_resolves_inside_is_refused_for_good_and_nothing_is_sent(
    sessions: Sessions, settings: Settings, addresses: list[str]
) -> None:
    settings.allow_private_webhooks = False
    delivery = open_delivery(sessions, "https://innocent.example/hook")
    deliver(sessions, settings, delivery, START, resolve=lambda _, __: addresses)
    after = row(sessions, delivery)
    assert (after.status, after.response_status) == ("failed", None)
    assert after.response_text is not None
    assert after.response_text.startswith("Not sent: innocent.example")


def test_one_slow_or_broken_delivery_does_not_hold_up_another(sessions: Sessions, settings: Settings) -> None:
    held, release = threading.Event(), threading.Event()

    def slow(_: str, __: int) -> list[str]:
        held.set()
        assert release.wait(20)
        return ["127.0.0.1"]

    with receiving() as receiver:
        first = open_delivery(sessions, f"http://slow.internal:{receiver.port}/hook")
        thread = threading.Thread(target=lambda: deliver(sessions, settings, first, START, resolve=slow))
        thread.start()
        assert held.wait(20)
        with sessions.begin() as session:
            second = session.scalars(
                select(Delivery.id).where(Delivery.id == first).with_for_update(skip_locked=True)
            ).all()
        assert second == [first]  # no row is locked while it is being sent
        other = open_delivery(sessions, receiver.url, name="other")
        deliver(sessions, settings, other, START)
        assert len(receiver.got) == 1
        release.set()
        thread.join()
    assert row(sessions, first).status == row(sessions, other).status == "delivered"


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999])
def test_waits_grow_within_their_bounds(jitter: float) -> None:
    waits = [backoff_s(tries, jitter) for tries in range(1, MAX_TRIES)]
    assert waits == sorted(waits)
    assert 4.0 <= waits[0] <= 6.0
    assert max(waits) <= 7200 * 1.2
    assert 3 * 3600 < sum(waits) < 8 * 3600
