"""More requests at once than there are connections wait for one another; nobody waits for ever, and none is refused."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, select, text
from sqlalchemy.orm import Session, sessionmaker

import server.app
from server.access.models import Token
from server.app import create_api
from server.places import Busy, Places
from tests.conftest import Clock
from tests.forecurve.serving import served
from tests.server.reporting import Headers
from tests.server.test_patience import locked, settings_of

HERD = 60
"""More than there are threads."""

Sessions = sessionmaker[Session]


def test_a_herd_that_comes_while_the_database_stands_still_is_answered_whole(
    engine: Engine, sessions: Sessions, headers: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.app, "PLACES", 3)
    app = create_api(settings_of(engine))
    come: list[object] = []

    async def counting(scope: Any, receive: Any, send: Any) -> None:
        come.append(scope)
        await app(scope, receive, send)

    with served(counting) as url, ThreadPoolExecutor(HERD) as pool:
        client = httpx.Client(timeout=60, limits=httpx.Limits(max_connections=None))
        with locked(sessions, "tokens"):
            asked = [pool.submit(client.get, f"{url}/v1/me", headers=headers["read"]) for _ in range(HERD)]
            deadline = time.monotonic() + 30
            while len(come) < HERD and time.monotonic() < deadline:
                time.sleep(0.01)
            assert httpx.get(f"{url}/healthz", timeout=10).status_code == 200, "nor does it take the process for dead"
        assert [each.result().status_code for each in asked] == [200] * HERD
    app.state.sessions.kw["bind"].dispose()


def test_an_open_stream_takes_no_place(
    engine: Engine, sessions: Sessions, headers: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.app, "PLACES", 1)
    app = create_api(settings_of(engine))
    with (
        served(app) as url,
        httpx.Client(base_url=url, headers=headers["read"], timeout=10) as client,
        ExitStack() as open,
    ):
        for _ in range(2):
            assert open.enter_context(client.stream("GET", "/v1/stream")).status_code == 200
        assert client.get("/v1/me").status_code == 200
    app.state.sessions.kw["bind"].dispose()


def test_who_finds_no_place_in_time_is_told_so_and_takes_none() -> None:
    async def three_at_one_place() -> str:
        places = Places(1, longest_wait_s=0.0)
        async with places.one():
            with pytest.raises(Busy) as refused:
                async with places.one():
                    raise AssertionError("there was one place")
        async with places.one():
            return str(refused.value)

    assert "nothing was changed" in asyncio.run(three_at_one_place())


def test_a_request_under_way_holds_up_no_other_of_its_token(
    api: TestClient, sessions: Sessions, headers: Headers, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    import server.runs.endpoints as endpoints

    def looks_on(session: Session, **_: Any) -> Any:
        with sessions.begin() as other:
            other.execute(text("SET LOCAL lock_timeout = '1s'"))
            mine = select(Token).where(Token.name == "test read").with_for_update(key_share=True)
            assert other.scalars(mine).one().last_used_at is None
        assert session.scalar(text("SELECT pg_current_xact_id_if_assigned()")) is None, "readers of events wait for it"
        return [], None

    monkeypatch.setattr(endpoints.service, "list_runs", looks_on)
    assert api.get("/v1/runs", headers=headers["read"]).status_code == 200
    with sessions() as session:
        assert session.scalars(select(Token.last_used_at).where(Token.name == "test read")).one() == clock.now
