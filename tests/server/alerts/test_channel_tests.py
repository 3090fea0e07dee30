"""`POST /v1/channels/{id}:test`: a delivery without an alert, in the outbox as every other."""

from __future__ import annotations

from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.telling import DELIVER_TASK
from server.events.models import Event
from tests.server.forecasts.seeds import SECRET, enqueued, make_channel
from tests.server.reporting import Headers, faults

Sessions = sessionmaker[Session]


def channel_id(sessions: Sessions, min_level: str = "ALERT") -> str:
    with sessions.begin() as session:
        return make_channel(session, "https://hooks.example.com/x", min_level=min_level).id


def test_a_test_is_a_delivery_that_waits_for_the_worker(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    channel = channel_id(sessions, "WARN")
    answer = api.post(f"/v1/channels/{channel}:test", headers=headers["admin"])
    assert answer.status_code == 202, answer.text
    delivery = answer.json()
    assert (delivery["alert_id"], delivery["channel_id"], delivery["level"]) == (None, channel, "WARN")
    assert (delivery["status"], delivery["tries"], delivery["response_text"]) == ("pending", 0, None)
    assert SECRET not in answer.text
    assert api.get(f"/v1/deliveries/{delivery['id']}", headers=headers["read"]).json() == delivery
    assert api.get("/v1/deliveries", headers=headers["read"]).json()["items"] == [delivery]
    with sessions() as session:
        assert enqueued(session, DELIVER_TASK) == [[delivery["id"]]]
        event = session.scalars(select(Event).where(Event.kind == "channel.tested")).one()
    assert event.actor.startswith("tok_")
    assert (event.evidence["channel"], event.evidence["delivery"]) == (channel, delivery["id"])


def test_a_channel_is_tested_as_often_as_somebody_wants(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    path = f"/v1/channels/{channel_id(sessions)}:test"
    first, second = (api.post(path, headers=headers["admin"]).json()["id"] for _ in range(2))
    assert first != second


def test_a_deleted_channel_is_not_tested_and_a_test_under_way_is_given_up(
    api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    channel = channel_id(sessions)
    delivery = api.post(f"/v1/channels/{channel}:test", headers=headers["admin"]).json()["id"]
    assert api.delete(f"/v1/channels/{channel}", headers=headers["admin"]).status_code == 204
    refused = api.post(f"/v1/channels/{channel}:test", headers=headers["admin"])
    assert refused.status_code == 404
    assert "`GET /v1/channels` lists them" in faults(refused)["channel_id"]
    given_up = api.get(f"/v1/deliveries/{delivery}", headers=headers["read"]).json()
    assert (given_up["status"], given_up["response_text"]) == ("failed", "The channel was deleted.")
