"""`forecurve channel` against the real API."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi import FastAPI
from pydantic import SecretStr
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from forecurve.cli.asking import channel_trial
from server.access.service import mint
from server.alerts.models import Delivery
from server.settings import Settings
from tests.conftest import Clock
from tests.server.forecasts.seeds import make_channel
from tests.worker.receiver import receiving
from worker.notify import deliver

from .conftest import Forecurve

HOOK = "https://hooks.slack.com/services/T0/B0/secret"


def test_channels_are_added_listed_and_removed(forecurve: Forecurve, admin: str) -> None:
    assert "forecurve channel add NAME" in forecurve("channel", "list").out

    slack = forecurve("channel", "add", "ops", "--kind", "slack", "--to", HOOK)
    hook = forecurve(
        "channel", "add", "pager", "--kind", "webhook", "--to", "https://example.com/x", "--min-level", "warn"
    )

    assert slack.out.split()[1:] == ["ops", "slack", "hears", "alerts", "from", "ALERT", "on"]
    assert "signing secret, not shown again: whsec_" in hook.out
    listed = forecurve("channel", "list")
    assert "https://example.com/x" in listed.out
    assert "whsec_" not in listed.out
    assert "B0/secret" not in listed.out
    items = forecurve("channel", "list", "--json").json["items"]
    assert [(one["name"], one["min_level"]) for one in items] == [("pager", "WARN"), ("ops", "ALERT")]

    removed = forecurve("channel", "remove", items[0]["id"], "--json")
    assert removed.json == {"id": items[0]["id"], "removed": True}
    assert "pager" not in forecurve("channel", "list").out
    again = forecurve("channel", "remove", items[0]["id"])
    assert again.code == 2
    assert "`forecurve channel list` lists them" in again.err


def test_a_mailbox_is_added_where_the_service_sends_mail(
    forecurve: Forecurve, admin: str, application: FastAPI
) -> None:
    refused = forecurve("channel", "add", "ops", "--kind", "email", "--to", "ops@lab.example")
    assert (refused.code, "FORECURVE_SMTP_URL" in refused.err) == (2, True)
    application.state.settings.smtp_url = SecretStr("smtp://mail.example")
    added = forecurve("channel", "add", "ops", "--kind", "email", "--to", "ops@lab.example")
    assert added.out.split()[1:] == ["ops", "email", "hears", "alerts", "from", "ALERT", "on"]
    assert "mailto:ops@lab.example" in forecurve("channel", "list").out


def test_an_address_may_come_from_stdin(forecurve: Forecurve, admin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{HOOK}\n"))
    assert (
        forecurve("channel", "add", "ops", "--kind", "slack", "--to", "-", "--json").json["url"].startswith("https://h")
    )


def test_an_address_that_nothing_can_be_sent_to_is_bad_input(forecurve: Forecurve, admin: str) -> None:
    refused = forecurve("channel", "add", "ops", "--kind", "slack", "--to", "ftp://example.com")
    assert refused.code == 2
    assert "https://" in refused.err
    assert forecurve("channel", "add", "ops", "--kind", "pigeon", "--to", HOOK).code == 2


def _worker_in_the_pauses(
    monkeypatch: pytest.MonkeyPatch, sessions: sessionmaker[Session], data_dir: Path, *, allow_private: bool
) -> None:
    """While the command waits, a worker delivers."""
    settings = Settings(DATABASE_URL="postgresql://unused", data_dir=data_dir, allow_private_webhooks=allow_private)

    def work(_: float) -> None:
        with sessions() as session:
            waiting = session.scalars(select(Delivery.id).where(Delivery.status == "pending")).all()
        for delivery_id in waiting:
            deliver(sessions, settings, delivery_id, datetime.now(UTC))

    monkeypatch.setattr(channel_trial.time, "sleep", work)


def _channel(sessions: sessionmaker[Session], url: str) -> str:
    with sessions.begin() as session:
        return make_channel(session, url).id


def test_a_test_message_is_waited_for(
    forecurve: Forecurve,
    admin: str,
    sessions: sessionmaker[Session],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    _worker_in_the_pauses(monkeypatch, sessions, tmp_path, allow_private=True)
    with receiving((200, {}, b"got\x1bit")) as receiver:
        channel = _channel(sessions, receiver.url)
        told = forecurve("channel", "test", channel)
        delivery = forecurve("channel", "test", channel, "--json").json

    assert (told.code, len(receiver.got)) == (0, 2)
    assert told.out == f"{channel}  delivered; it answered 200 got\N{REPLACEMENT CHARACTER}it\n"
    assert (delivery["status"], delivery["channel_id"], delivery["alert_id"]) == ("delivered", channel, None)
    assert "a test" in forecurve("alert", "deliveries").out


def test_a_test_message_that_does_not_arrive_is_a_failure_with_the_reason(
    forecurve: Forecurve,
    admin: str,
    sessions: sessionmaker[Session],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    _worker_in_the_pauses(monkeypatch, sessions, tmp_path, allow_private=False)
    with receiving() as receiver:
        result = forecurve("channel", "test", _channel(sessions, receiver.url), "--json")

    assert (result.code, result.out, receiver.got) == (1, "", [])
    body = json.loads(result.err)
    assert body["code"] == "failed"
    assert body["error"].startswith("the test did not arrive: Not sent: 127.0.0.1")


def test_without_a_worker_the_wait_ends_with_the_way_out(
    forecurve: Forecurve, admin: str, sessions: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_trial.time, "sleep", lambda _: None)
    result = forecurve("channel", "test", _channel(sessions, "https://example.com/x"))
    assert result.code == 1
    assert "`forecurve status` says whether a worker runs" in result.err


def test_only_a_channel_in_use_is_tested_and_only_by_an_administrator(
    forecurve: Forecurve, admin: str, sessions: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    unknown = forecurve("channel", "test", "chn_nope")
    assert unknown.code == 2
    assert "`forecurve channel list` lists them" in unknown.err
    with sessions.begin() as session:
        _, secret = mint(session, kind="api", name="operator", scopes=["operate"], now=clock.now)
    monkeypatch.setenv("FORECURVE_TOKEN", secret)
    assert forecurve("channel", "test", _channel(sessions, "https://example.com/x")).code == 1
