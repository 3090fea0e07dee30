"""`forecurve alert` against the real API."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session, sessionmaker

from server.runs.models import Run

from .conftest import Forecurve
from .seeded import seeded_alert, seeded_run


@pytest.fixture
def run_id(sessions: sessionmaker[Session]) -> str:
    return seeded_run(sessions)


@pytest.fixture
def alert_id(sessions: sessionmaker[Session], run_id: str) -> str:
    return seeded_alert(sessions, run_id)


def test_alerts_is_short_for_the_list_and_shows_ids(forecurve: Forecurve, service: str, alert_id: str) -> None:
    listed = " ".join(forecurve("alerts").out.split())
    assert alert_id in listed
    assert "control fell below its forecast. " in listed
    assert forecurve("alerts", "--json").json == forecurve("alert", "list", "--json").json


def test_an_alert_is_shown_with_its_evidence_and_where_it_was_sent(
    forecurve: Forecurve, service: str, run_id: str, alert_id: str
) -> None:
    shown = forecurve("alert", "show", alert_id)

    assert shown.out.startswith(f"ALERT  control fell below its forecast  {alert_id}\n")
    assert f"run         {run_id}" in shown.out
    assert "deepest     0.1235" in shown.out
    assert "points      40, which --json shows" in shown.out
    assert "run_length  7\n" in shown.out
    assert "e_value     1.016e+27\n" in shown.out
    assert "expected    lower 0.5476, median 0.5789\n" in shown.out
    assert "since       31 CPU-seconds" in shown.out
    assert "\n  first\n" in shown.out
    assert "\x1b" not in shown.out
    assert "delivered  200" in shown.out
    assert [one["status"] for one in forecurve("alert", "show", alert_id, "--json").json["deliveries"]] == ["delivered"]


def test_the_alert_of_an_archived_run_is_found(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], run_id: str, alert_id: str
) -> None:
    with sessions.begin() as session:
        session.get_one(Run, run_id).status = "stopped"
    forecurve("run", "archive", run_id)

    assert alert_id not in forecurve("alerts").out
    assert alert_id in forecurve("alert", "show", alert_id).out


def test_alerts_are_acknowledged_and_resolved(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], alert_id: str
) -> None:
    other = seeded_alert(sessions, seeded_run(sessions, "other"))

    seen = forecurve("alert", "acknowledge", alert_id, other)
    listed = forecurve("alerts", "--open").out
    settled = forecurve("alert", "resolve", alert_id, "--json")

    assert seen.out.splitlines() == [f"{alert_id}  acknowledged", f"{other}  acknowledged"]
    assert listed.count("acknowledged") == 2
    assert settled.json["items"][0]["resolved_at"]
    assert [one["id"] for one in forecurve("alerts", "--open", "--json").json["items"]] == [other]


def test_deliveries_are_listed(forecurve: Forecurve, service: str, alert_id: str) -> None:
    assert "delivered" in forecurve("alert", "deliveries", alert_id).out
    assert forecurve("alert", "deliveries", "--json").json["items"][0]["alert_id"] == alert_id


@pytest.mark.parametrize("command", ["show", "acknowledge", "resolve", "deliveries"])
def test_an_unknown_alert_is_bad_input(forecurve: Forecurve, service: str, command: str) -> None:
    result = forecurve("alert", command, "alr_nope")
    assert result.code == 2
    assert "alr_nope" in result.err


def test_without_deliveries_the_channels_are_named(forecurve: Forecurve, service: str) -> None:
    assert "forecurve channel list" in forecurve("alert", "deliveries").out
