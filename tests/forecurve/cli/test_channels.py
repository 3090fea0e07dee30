"""`forecurve channel` against the real API."""

from __future__ import annotations

import io
import sys

import pytest

from .conftest import Forecurve

HOOK = "https://hooks.slack.com/services/T0/B0/secret"


def test_channels_are_added_listed_and_removed(forecurve: Forecurve, admin: str) -> None:
    assert "forecurve channel add NAME" in forecurve("channel", "list").out

    slack = forecurve("channel", "add", "ops", "--kind", "slack", "--to", HOOK)
    hook = forecurve(
        "channel", "add", "pager", "--kind", "webhook", "--to", "https://example.com/x", "--min-level", "warn"
    )

    assert slack.out.split()[1:] == ["ops", "slack", "from", "ALERT", "on"]
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
