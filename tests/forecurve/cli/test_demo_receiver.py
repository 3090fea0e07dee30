"""The demo's receiver believes a message only when its signature holds."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import httpx
import pytest

from forecurve.cli.demo.receiver import Receiver, is_signed
from worker.notify import sign

SECRET = "whsec_" + "c2VjcmV0LW9mLXRoZS10ZXN0"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    receiver.secret = SECRET
    yield receiver
    receiver.close()


def signed(body: bytes, *, stamp: int | None = None) -> dict[str, str]:
    stamp = int(time.time()) if stamp is None else stamp
    return {
        "webhook-id": "dlv_1",
        "webhook-timestamp": str(stamp),
        "webhook-signature": sign(SECRET, "dlv_1", stamp, body),
    }


def test_a_signed_message_is_taken_and_its_text_is_what_slack_would_show(receiver: Receiver) -> None:
    sections = [{"type": "section", "text": {"type": "mrkdwn", "text": "It fell."}}, {"type": "actions"}]
    body = json.dumps({"text": "short", "blocks": sections}).encode()

    answer = httpx.post(receiver.url, content=body, headers=signed(body), trust_env=False)

    assert answer.status_code == 200
    assert [(sent.verified, sent.text, sent.message_id) for sent in receiver.deliveries] == [
        (True, "It fell.", "dlv_1")
    ]


def test_a_message_changed_on_its_way_is_not_believed(receiver: Receiver) -> None:
    answer = httpx.post(receiver.url, content=b'{"text": "b"}', headers=signed(b'{"text": "a"}'), trust_env=False)

    assert answer.status_code == 401
    assert [sent.verified for sent in receiver.deliveries] == [False]


def test_an_old_message_sent_again_is_not_believed() -> None:
    body = b"{}"
    headers = signed(body, stamp=1_000_000)

    assert is_signed(SECRET, headers, body, now=1_000_100.0)
    assert not is_signed(SECRET, headers, body, now=1_000_400.0)
    assert not is_signed(SECRET, {}, body)


@pytest.mark.parametrize("body", [b"no json", b"[1]"])
def test_what_is_no_message_is_refused(receiver: Receiver, body: bytes) -> None:
    assert httpx.post(receiver.url, content=body, headers=signed(body), trust_env=False).status_code == 400
    assert receiver.deliveries == []
