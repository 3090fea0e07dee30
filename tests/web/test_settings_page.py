"""Tokens, sessions and channels as the settings list them."""

from __future__ import annotations

import re
from datetime import timedelta

from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from server.access.service import create_token, open_session
from tests.conftest import Clock
from tests.web.conftest import Seeded
from tests.web.reading import text_of


def test_settings_list_tokens_and_channels_without_their_secrets(site: TestClient, seeded: Seeded) -> None:
    same_site = {"Sec-Fetch-Site": "same-origin"}
    made = site.post("/v1/tokens", json={"name": "ci", "scopes": ["read"]}, headers=same_site).json()
    html = site.get("/settings").text
    assert made["secret"] not in html
    assert f"{made['prefix']}…" in html
    assert f'data-action="/v1/tokens/{made["id"]}" data-method="DELETE"' in html
    assert "https://hooks.example.com/…" in html
    assert "services/x" not in html


def test_settings_say_what_a_token_may(site: TestClient) -> None:
    words = text_of(site.get("/settings").text)
    assert "scopes: read, operate, admin" in words
    assert "operate also reports, starts, pauses and stops runs" in words


def test_settings_say_when_a_token_expires_in_the_viewers_zone(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock
) -> None:
    with sessions.begin() as session:
        create_token(session, name="ci", scopes=["read"], lifetime=timedelta(days=3), actor="test", now=clock.now)
    html = site.get("/settings").text
    ends = (clock.now + timedelta(days=3)).isoformat()
    moment = rf'<time[^>]* datetime="{re.escape(ends)}"[^>]* data-style="clock"'
    assert re.search(f'in 3 d</span><span class="sub">{moment}', html)


def test_settings_list_the_sessions_that_are_open_and_end_them(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock
) -> None:
    with sessions.begin() as session:
        _, token = create_token(session, name="ci", scopes=["read"], lifetime=None, actor="test", now=clock.now)
        open_session(session, token, clock.now)
    html = site.get("/settings").text
    assert "browser session (this one)" in text_of(html)
    opened = re.search(r'data-action="/v1/tokens/(tok_\w+)"[^>]*data-confirm="End the browser session ci', html)
    assert opened
    ended = site.delete(f"/v1/tokens/{opened[1]}", headers={"Sec-Fetch-Site": "same-origin"})
    assert ended.status_code == 200
    assert "the browser session ci" not in site.get("/settings").text
