"""Alerts, channels and deliveries over HTTP."""

from __future__ import annotations

import base64

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from pydantic import SecretStr
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.models import Channel, Delivery
from server.alerts.service import open_alert
from server.runs.models import Run
from tests.at_once import at_once
from tests.server.forecasts.seeds import START, make_run
from tests.server.reporting import faults

Headers = dict[str, dict[str, str]]
SLACK = {"name": "team", "kind": "slack", "url": "https://hooks.slack.com/services/T0/B0/verysecret"}


@pytest.fixture
def alerts(api: TestClient, headers: Headers, sessions: sessionmaker[Session]) -> list[str]:
    """Ids of three alerts of two runs, oldest first; the first is resolved. A channel gets each of them."""
    api.post("/v1/channels", json={**SLACK, "min_level": "WARN"}, headers=headers["admin"]).raise_for_status()
    with sessions.begin() as session:
        one, two = make_run(session, "one"), make_run(session, "two")
        opened = [
            open_alert(session, run, kind=kind, level="ALERT", title="t", text="x", now=START)
            for run, kind in ((one, "below_forecast"), (one, "run_failed"), (two, "below_forecast"))
        ]
        opened[0].resolved_at = START
        return [alert.id for alert in opened]


def test_alerts_are_listed_newest_first_by_run_and_by_open(
    api: TestClient, headers: Headers, alerts: list[str]
) -> None:
    def listed(**query: object) -> list[str]:
        answer = api.get("/v1/alerts", params=query, headers=headers["read"])  # type: ignore[arg-type]
        assert answer.status_code == 200, answer.text
        return [item["id"] for item in answer.json()["items"]]

    run = api.get("/v1/alerts", headers=headers["read"]).json()["items"][-1]["run_id"]
    assert listed() == alerts[::-1]
    assert listed(open=True) == [alerts[2], alerts[1]]
    assert listed(open=False) == [alerts[0]]
    assert listed(run_id=run) == [alerts[1], alerts[0]]
    first = api.get("/v1/alerts?limit=2", headers=headers["read"]).json()
    assert [item["id"] for item in first["items"]] == [alerts[2], alerts[1]]
    assert listed(limit=2, cursor=first["next_cursor"]) == [alerts[0]]


def test_one_alert_is_read_by_its_id_also_when_its_run_is_archived(
    api: TestClient, headers: Headers, alerts: list[str], sessions: sessionmaker[Session]
) -> None:
    listed = api.get("/v1/alerts", headers=headers["read"]).json()["items"]
    with sessions.begin() as session:
        session.get_one(Run, listed[0]["run_id"]).archived_at = START
    read = api.get(f"/v1/alerts/{alerts[2]}", headers=headers["read"])
    assert (read.status_code, read.json()) == (200, listed[0])
    assert alerts[2] not in api.get("/v1/alerts", headers=headers["read"]).text


def test_acknowledging_is_written_down_once_and_leaves_the_alert_open(
    api: TestClient, headers: Headers, alerts: list[str], clock: object
) -> None:
    path = f"/v1/alerts/{alerts[1]}:acknowledge"
    first = api.post(path, headers=headers["operate"]).json()
    clock.advance(60)  # type: ignore[attr-defined]
    assert api.post(path, headers=headers["operate"]).json() == first
    assert first["acknowledged_at"] is not None
    assert first["resolved_at"] is None
    assert api.post(path, headers=headers["read"]).status_code == 403
    missing = api.post("/v1/alerts/alr_nothing:acknowledge", headers=headers["operate"])
    assert (missing.status_code, missing.json()["code"]) == (404, "not-found")


def test_resolving_closes_an_alert_once_and_is_in_the_runs_history(
    api: TestClient, headers: Headers, alerts: list[str], clock: object
) -> None:
    path = f"/v1/alerts/{alerts[1]}:resolve"
    first = api.post(path, headers=headers["operate"]).json()
    clock.advance(60)  # type: ignore[attr-defined]
    assert api.post(path, headers=headers["operate"]).json() == first
    assert first["resolved_at"] is not None
    still_open = api.get("/v1/alerts?open=true", headers=headers["read"]).json()["items"]
    assert [alert["id"] for alert in still_open] == [alerts[2]]
    history = api.get(f"/v1/runs/{first['run_id']}/events", headers=headers["read"]).json()["items"]
    (event,) = [event for event in history if event["kind"] == "alert.resolved"]
    assert event["evidence"] == {"alert": alerts[1]}
    assert event["actor"].startswith("tok_")
    assert api.post(path, headers=headers["read"]).status_code == 403
    missing = api.post("/v1/alerts/alr_nothing:resolve", headers=headers["operate"])
    assert (missing.status_code, missing.json()["code"]) == (404, "not-found")


def test_deliveries_are_listed_by_alert(api: TestClient, headers: Headers, alerts: list[str]) -> None:
    every = api.get("/v1/deliveries", headers=headers["read"]).json()["items"]
    one = api.get(f"/v1/deliveries?alert_id={alerts[0]}", headers=headers["read"]).json()["items"]
    by_status = {
        status: api.get(f"/v1/deliveries?status={status}", headers=headers["read"]).json()["items"]
        for status in ("pending", "delivered", "failed")
    }
    assert by_status == {status: [one for one in every if one["status"] == status] for status in by_status}
    assert any(by_status.values())
    assert api.get("/v1/deliveries?status=lost", headers=headers["read"]).status_code == 422
    assert len(every) == 3
    assert [(d["alert_id"], d["status"], d["tries"]) for d in one] == [(alerts[0], "pending", 0)]


def test_a_channels_secret_is_shown_once_and_its_slack_path_never(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session]
) -> None:
    made = api.post("/v1/channels", json=SLACK, headers=headers["admin"])
    assert made.status_code == 201, made.text
    secret = made.json()["secret"]
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    (listed,) = api.get("/v1/channels", headers=headers["admin"]).json()["items"]
    assert "secret" not in listed
    assert "verysecret" not in made.text + str(listed)
    assert listed["min_level"] == "ALERT"
    with sessions() as session:
        assert session.get_one(Channel, listed["id"]).url == SLACK["url"]


def test_a_deleted_channel_keeps_its_past_but_neither_url_nor_secret_nor_pending_deliveries(
    api: TestClient, headers: Headers, alerts: list[str], sessions: sessionmaker[Session]
) -> None:
    (channel,) = api.get("/v1/channels", headers=headers["admin"]).json()["items"]
    path = f"/v1/channels/{channel['id']}"
    assert api.delete(path, headers=headers["admin"]).status_code == 204
    assert api.delete(path, headers=headers["admin"]).status_code == 404
    assert api.get("/v1/channels", headers=headers["admin"]).json()["items"] == []
    with sessions() as session:
        row = session.get_one(Channel, channel["id"])
        assert (row.enabled, row.url, row.secret) == (False, "", "")
        assert {d.status for d in session.query(Delivery)} == {"failed"}


def test_a_channel_in_use_has_its_name_alone(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session]
) -> None:
    def add() -> Response:
        return api.post("/v1/channels", json=SLACK, headers=headers["admin"])

    made, refused = sorted(at_once(2, add), key=lambda answer: answer.status_code)
    assert (made.status_code, refused.status_code) == (201, 409)
    first = made.json()["id"]
    assert faults(refused)["name"] == f"channel {first} is called so already; take another name, or remove that one"
    assert api.post("/v1/channels", json={**SLACK, "name": "Team"}, headers=headers["admin"]).status_code == 201
    api.delete(f"/v1/channels/{first}", headers=headers["admin"])
    assert add().status_code == 201


def test_channels_are_for_administrators(api: TestClient, headers: Headers) -> None:
    for scope in ("read", "operate"):
        assert api.post("/v1/channels", json=SLACK, headers=headers[scope]).status_code == 403
        assert api.get("/v1/channels", headers=headers[scope]).status_code == 403
        assert api.delete("/v1/channels/chn_x", headers=headers[scope]).status_code == 403


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/x",
        "ftp://hooks.example.com/x",
        "hooks.example.com/x",
        "https://",
        "https://user:pass@hooks.example.com/x",
        "https://127.0.0.1/x",
        "https://10.0.0.8/x",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/x",
        "https://[::ffff:10.0.0.8]/x",
        "https://[64:ff9b::a00:8]/x",
        "https://[64:ff9b:1::a00:8]/x",
        "https://[::10.0.0.8]/x",
        "https://[::ffff:0:10.0.0.8]/x",
        "https://[2002:a00:8::]/x",
        "https://[fec0::8]/x",
        "https://[5f00::8]/x",
        "https://0.0.0.0/x",
        "https://hooks.example.com:99999/x",
        "https://hooks.example.com/a b",
        "https://[oops/x",
        "https://hooks..example.com/x",
        f"https://{'a' * 64}.example.com/x",
        "https://xn--/x",
        "https://\N{FULLWIDTH PERCENT SIGN}31.example/x",
    ],
)
def test_a_url_that_leads_inside_or_nowhere_is_refused_by_name(api: TestClient, headers: Headers, url: str) -> None:
    answer = api.post("/v1/channels", json={**SLACK, "url": url}, headers=headers["admin"])
    assert answer.status_code == 422, answer.text
    (fault,) = answer.json()["errors"]
    assert (fault["field"], fault["value"]) == ("url", url)
    assert len(fault["message"]) > 20
    assert api.get("/v1/channels", headers=headers["admin"]).json()["items"] == []


def test_a_url_of_slack_is_for_channels_of_that_kind(api: TestClient, headers: Headers) -> None:
    body = {"name": "#rl", "kind": "webhook", "url": "https://hooks.slack.com/services/T0/B0/secret"}
    refused = api.post("/v1/channels", json=body, headers=headers["admin"])
    assert refused.status_code == 422
    assert faults(refused)["kind"].endswith("give kind slack")
    assert api.post("/v1/channels", json=body | {"kind": "slack"}, headers=headers["admin"]).status_code == 201


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://127.0.0.1:8080/x", 201),
        ("https://10.0.0.8/x", 201),
        ("http://slack-proxy.internal/x", 201),
        ("http://169.254.169.254/latest", 422),
        ("http://[64:ff9b:1::a9fe:a9fe]/latest", 422),
        ("http://[fd00:ec2::254]/latest", 422),
        ("http://[fd00::8]/x", 201),
        ("https://[2606:2800:220:1:248:1893:25c8:1946]/x", 201),
        ("http://93.184.215.14/x", 422),
    ],
)
def test_where_private_webhooks_are_allowed_http_goes_to_private_addresses_only(
    api: TestClient, headers: Headers, url: str, status: int
) -> None:
    api.app.state.settings.allow_private_webhooks = True  # type: ignore[attr-defined]
    answer = api.post("/v1/channels", json={**SLACK, "url": url}, headers=headers["admin"])
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("url", ["ops@lab.example", "mailto:ops@lab.example", " MAILTO:ops@lab.example "])
def test_a_mailbox_has_no_secret(api: TestClient, headers: Headers, url: str) -> None:
    body = {"name": "ops", "kind": "email", "url": url}
    refused = api.post("/v1/channels", json=body, headers=headers["admin"])
    assert (refused.status_code, "FORECURVE_SMTP_URL" in faults(refused)["kind"]) == (422, True)
    api.app.state.settings.smtp_url = SecretStr("smtp://mail.example")  # type: ignore[attr-defined]
    made = api.post("/v1/channels", json=body, headers=headers["admin"]).json()
    assert (made["kind"], made["url"], made["secret"]) == ("email", "mailto:ops@lab.example", "")
    assert api.post(f"/v1/channels/{made['id']}:test", headers=headers["admin"]).status_code == 202
    assert api.delete(f"/v1/channels/{made['id']}", headers=headers["admin"]).status_code == 204


@pytest.mark.parametrize(
    "url",
    [
        *("", "ops", "ops@", "@lab.example", "ops@lab", "a b@lab.example", "ops@lab.example, all@lab.example"),
        *("ops@lab.example\r\nBcc: all@lab.example", "mailto:ops@lab.example?bcc=all@lab.example"),
        *("Ops <ops@lab.example>", "https://lab.example", "ö@lab.example", f"{'n' * 250}@lab.example", "a@b@c.de"),
    ],
)
def test_what_is_no_mailbox_is_refused(api: TestClient, headers: Headers, url: str) -> None:
    api.app.state.settings.smtp_url = SecretStr("smtp://mail.example")  # type: ignore[attr-defined]
    refused = api.post("/v1/channels", json={"name": "ops", "kind": "email", "url": url}, headers=headers["admin"])
    assert refused.status_code == 422
    assert faults(refused)["url"] == "this is no e-mail address; give one like ops@example.com"


def test_unknown_fields_kinds_and_levels_are_refused(api: TestClient, headers: Headers) -> None:
    for bad, field in ({"kind": "pager"}, "kind"), ({"min_level": "LOUD"}, "min_level"), ({"colour": "red"}, "colour"):
        answer = api.post("/v1/channels", json={**SLACK, **bad}, headers=headers["admin"])
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == field
