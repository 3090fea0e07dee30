"""The settings page says how the last test of each channel went."""

from __future__ import annotations

import re

from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.models import Channel, Delivery
from tests.conftest import Clock
from tests.web.conftest import Seeded
from tests.web.reading import text_of


def test_settings_show_how_the_last_test_of_a_channel_went(
    site: TestClient, seeded: Seeded, sessions: sessionmaker[Session], clock: Clock
) -> None:
    same_site = {"Sec-Fetch-Site": "same-origin"}
    with sessions() as session:
        channel = session.scalars(select(Channel.id)).one()
    html = site.get("/settings").text
    assert f'data-action="/v1/channels/{channel}:test"' in html
    assert "none yet" in _outcome(html, channel)
    for changes, said in (
        ({}, "on its way"),
        ({"status": "failed", "response_status": 404, "response_text": "<no_service>"}, "failed : 404 <no_service>"),
        ({"status": "failed", "response_text": "Not sent: it is private."}, "failed : Not sent: it is private."),
        ({"status": "delivered", "delivered_at": clock.now, "response_status": 200}, "delivered now"),
    ):
        sent = site.post(f"/v1/channels/{channel}:test", headers=same_site).json()
        with sessions.begin() as session:
            delivery = session.get_one(Delivery, sent["id"])
            for name, value in changes.items():
                setattr(delivery, name, value)
        assert said in _outcome(site.get("/settings").text, channel)


def _outcome(html: str, channel: str) -> str:
    found = re.search(rf'<span id="test-{channel}" role="status">(.*?)</td>', html, re.DOTALL)
    assert found
    return text_of(found[1])
