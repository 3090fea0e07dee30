"""The stream of changes, read from a real server over a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker
from sse_starlette import ServerSentEvent
from starlette.types import Message

from server.events.models import Event
from server.events.reply import StreamReply
from server.events.service import current_cursor, record
from server.events.stream import MOST_WAITING, EventFeed
from tests.conftest import Clock
from tests.server.reporting import Headers, bearer, evaluation, external_run, faults, queued_run

Sessions = sessionmaker[Session]

LONG_ENOUGH_S = 20.0


@pytest.fixture
def address(application: FastAPI, api: TestClient, sessions: Sessions, clock: Clock) -> Iterator[str]:
    """A uvicorn on a free port that serves the same application, its feed polling fast."""
    application.state.feed = EventFeed(sessions, clock, poll_every_s=0.05)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(LONG_ENOUGH_S)
    assert not thread.is_alive(), "the streams did not end at shutdown"
    application.state.feed = EventFeed(sessions, clock)


class Stream:
    """Messages of one open stream."""

    def __init__(self, response: httpx.Response):
        self._lines = response.iter_lines()

    def next(self) -> dict[str, Any]:
        message: dict[str, Any] = {}
        for line in self._lines:
            if line.startswith(":"):
                continue
            if not line:
                if message:
                    return message
                continue
            name, _, value = line.partition(": ")
            message[name] = json.loads(value) if name == "data" else value
        raise EOFError

    def take(self, count: int) -> list[dict[str, Any]]:
        return [self.next() for _ in range(count)]


@contextmanager
def listen(address: str, headers: dict[str, str], query: str = "") -> Iterator[Stream]:
    with httpx.stream("GET", f"{address}/v1/stream{query}", headers=headers, timeout=LONG_ENOUGH_S) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Stream(response)


def cursor_now(sessions: Sessions) -> int:
    with sessions() as session:
        return current_cursor(session)


def test_changes_reach_everyone_who_listens(
    address: str, api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    since = f"?since={cursor_now(sessions)}"
    with listen(address, headers["read"], since) as one, listen(address, headers["operate"], since) as other:
        run = external_run(api, headers)
        run.send(1, evaluation(10))
        for stream in (one, other):
            messages = stream.take(3)
            assert {message["event"] for message in messages} == {"change"}
            assert [message["data"]["kind"] for message in messages] == ["run.created", "run.status", "evaluation"]
            assert {message["data"]["run_id"] for message in messages} == {run.run_id}
            assert ["id" in message for message in messages] == [True, False, True], "one id a transaction, at its end"


def test_a_listener_resumes_where_it_was_cut_off(
    address: str, api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    with listen(address, headers["read"], f"?since={cursor_now(sessions)}") as stream:
        first = queued_run(api, headers)
        message = stream.next()
        assert message["data"]["run_id"] == first
    missed = [queued_run(api, headers) for _ in range(3)]
    with listen(address, headers["read"] | {"Last-Event-ID": message["id"]}) as stream:
        assert [message["data"]["run_id"] for message in stream.take(3)] == missed
        live = queued_run(api, headers)
        assert stream.next()["data"]["run_id"] == live


def test_without_a_cursor_only_what_is_new_comes(
    address: str, api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    queued_run(api, headers)
    with listen(address, headers["read"]) as stream:
        later = queued_run(api, headers)
        assert stream.next()["data"]["run_id"] == later


def test_the_poller_runs_only_while_somebody_listens(
    address: str, application: FastAPI, headers: Headers, sessions: Sessions
) -> None:
    feed = application.state.feed
    assert feed._poller is None
    with listen(address, headers["read"]):
        _until(lambda: feed._poller is not None)
    _until(lambda: feed._poller is None)


def test_head_ends_at_once_and_keeps_its_connection(address: str, application: FastAPI, headers: Headers) -> None:
    with httpx.Client(base_url=address, headers=headers["read"], timeout=LONG_ENOUGH_S) as client:
        head = client.head("/v1/stream")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"].startswith("text/event-stream")
        assert client.get("/healthz").json() == {"status": "ok"}
    _until(lambda: application.state.feed._poller is None)


def test_listeners_outlive_an_outage_of_the_database(
    address: str, application: FastAPI, api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    with listen(address, headers["read"], f"?since={cursor_now(sessions)}") as stream:
        queued_run(api, headers)
        stream.next()  # it has caught up
        read, failures = application.state.feed._read, []

        def broken(cursor: int) -> Any:
            failures.append(cursor)
            with sessions() as session:
                session.execute(text("SELECT 1 / 0"))

        application.state.feed._read = broken
        _until(lambda: len(failures) >= 2)
        application.state.feed._read = read
        run_id = queued_run(api, headers)
        assert stream.next()["data"]["run_id"] == run_id


@pytest.mark.parametrize("end", ["revoked", "expired"])
def test_a_stream_ends_with_its_token_and_no_other_does(
    address: str, api: TestClient, headers: Headers, clock: Clock, end: str
) -> None:
    body = {"name": "guest", "scopes": ["read"], "expires_in_s": 60}
    token = api.post("/v1/tokens", json=body, headers=headers["admin"]).json()
    with listen(address, bearer(token["secret"])) as guest, listen(address, headers["read"]) as other:
        first = queued_run(api, headers)
        assert [stream.next()["data"]["run_id"] for stream in (guest, other)] == [first, first]
        if end == "revoked":
            api.delete(f"/v1/tokens/{token['id']}", headers=headers["admin"])
        else:
            clock.advance(60)
        with pytest.raises(EOFError):
            guest.next()
        queued_run(api, headers)
        assert other.next()["event"] == "change"


def test_a_listener_that_cannot_catch_up_is_let_go_to_resume(
    address: str, application: FastAPI, headers: Headers
) -> None:
    def unreachable() -> int:
        raise OperationalError("SELECT", {}, Exception("no connection"))

    application.state.feed._now = unreachable
    with listen(address, headers["read"]) as stream, pytest.raises(EOFError):
        stream.next()


def test_a_listener_that_does_not_keep_up_is_let_go_and_may_resume(sessions: Sessions, clock: Clock) -> None:
    async def lag() -> list[Any]:
        feed = EventFeed(sessions, clock, poll_every_s=3600)
        changes = feed.changes(None, "tok_test")
        waiting = asyncio.ensure_future(anext(changes))
        await _settled(lambda: bool(feed._listeners))
        for number in range(MOST_WAITING + 2):
            feed._hand_out([Event(id=number, transaction=number, kind="x", actor="test")])
        got = [await waiting]
        got += [message async for message in changes]
        assert not feed._listeners
        assert feed._poller is None
        return got

    got = asyncio.run(lag())
    assert 0 < len(got) <= MOST_WAITING + 1
    assert [int(message.id) for message in got] == list(range(len(got))), (
        "in order, and nothing left out before the end"
    )


def test_a_cursor_that_is_ahead_of_the_streams_own_gives_nothing_twice(sessions: Sessions, clock: Clock) -> None:
    async def resumed() -> list[str]:
        feed = EventFeed(sessions, clock, poll_every_s=3600)
        others = feed.changes(None, "tok_test")
        waiting = asyncio.ensure_future(anext(others))
        await _settled(lambda: bool(feed._listeners))
        with sessions.begin() as session:
            record(session, "seen", actor="test")
        with sessions() as session:
            cursor = current_cursor(session)  # as a page has it that was read a moment ago
        changes = feed.changes(cursor, "tok_test")
        asked = asyncio.ensure_future(anext(changes))
        await _settled(lambda: len(feed._listeners) == 2)
        with sessions.begin() as session:
            record(session, "new", actor="test")
        feed._hand_out(feed._read(feed._cursor).items)
        first = [await waiting, await asked]
        await changes.aclose()
        await others.aclose()
        return [json.loads(message.data)["kind"] for message in first]

    assert asyncio.run(resumed()) == ["seen", "new"]


def test_a_stream_that_nobody_reads_ends_and_is_forgotten(sessions: Sessions, clock: Clock) -> None:
    with sessions.begin() as session:
        record(session, "test", actor="test")
    feed = EventFeed(sessions, clock, poll_every_s=0.01)
    asyncio.run(_unread(feed.changes(0, "tok_x")))
    assert not feed._listeners


def test_a_stream_that_ends_itself_does_not_wait_for_who_does_not_read(sessions: Sessions, clock: Clock) -> None:
    feed = EventFeed(sessions, clock, poll_every_s=0.01)
    asyncio.run(_unread(feed.changes(None, "no token")))  # so it is let go
    assert not feed._listeners


async def _unread(changes: AsyncIterator[ServerSentEvent]) -> None:
    """The reply that carries these ends, though what it sends first, or last, is never taken."""
    never = asyncio.Event()
    sent: list[str] = []

    async def receive() -> Message:
        await never.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message["type"])
        if message["type"] == "http.response.body":
            await never.wait()  # its buffers are full

    reply = StreamReply(changes, unread_s=0.05)
    await asyncio.wait_for(reply({"type": "http", "method": "GET"}, receive, send), LONG_ENOUGH_S)
    assert sent == ["http.response.start", "http.response.body"]


def test_a_quiet_stream_has_a_beat_that_a_browser_hears_and_that_moves_no_cursor(
    sessions: Sessions, clock: Clock
) -> None:
    asyncio.run(_beaten(EventFeed(sessions, clock)))


async def _beaten(feed: EventFeed) -> None:
    heard, gone = [], asyncio.Event()

    async def receive() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message.get("body"):
            heard.append(message["body"].decode())
            gone.set()

    reply = StreamReply(feed.changes(None, "tok_x"), beat_every_s=0.01)
    await asyncio.wait_for(reply({"type": "http", "method": "GET"}, receive, send), LONG_ENOUGH_S)
    assert heard[0].split("\r\n") == ["event: beat", "data: {}", "", ""]


@pytest.mark.parametrize("cursor", ["yesterday", "-1", "9" * 19, "1" * 5000])
def test_a_bad_cursor_is_refused(cursor: str, api: TestClient, headers: Headers) -> None:
    answer = api.get("/v1/stream", headers=headers["read"] | {"Last-Event-ID": cursor})
    assert answer.status_code == 422
    assert "Last-Event-ID" in faults(answer)


def _until(holds: Any) -> None:
    deadline = time.monotonic() + LONG_ENOUGH_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def _settled(holds: Any) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError
