"""What takes the database too long is given up and said, so that one question does not hold up all others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.orm import Session, sessionmaker

from server.app import create_api
from server.settings import Settings
from tests.server.reporting import Headers
from worker.context import make_context

Sessions = sessionmaker[Session]


def settings_of(engine: Engine, **values: float) -> Settings:
    return Settings(DATABASE_URL=engine.url.render_as_string(hide_password=False), **values)


@contextmanager
def impatient(engine: Engine, **values: float) -> Iterator[TestClient]:
    app = create_api(settings_of(engine, **values))
    with TestClient(app) as api:
        yield api
    app.state.sessions.kw["bind"].dispose()


@contextmanager
def locked(sessions: Sessions, table: str) -> Iterator[None]:
    """Another transaction that holds the whole table."""
    with sessions() as session:
        session.execute(text(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
        yield


def assert_given_up(answer: Response, code: str, words: str) -> None:
    assert (answer.status_code, answer.json()["code"]) == (503, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]
    assert "nothing was changed" in answer.json()["detail"]
    assert int(answer.headers["retry-after"]) > 0


def test_a_statement_that_takes_too_long_is_given_up(engine: Engine, sessions: Sessions, headers: Headers) -> None:
    with impatient(engine, statement_timeout_s=0.2, lock_timeout_s=0) as api:
        with locked(sessions, "runs"):
            assert_given_up(api.get("/v1/runs", headers=headers["read"]), "took-too-long", "a smaller `limit`")
        assert api.get("/v1/runs", headers=headers["read"]).status_code == 200


def test_what_another_holds_is_not_waited_for_long(engine: Engine, sessions: Sessions, headers: Headers) -> None:
    body = {"executor": "external", "compute_unit": "steps"}
    with impatient(engine, lock_timeout_s=0.1) as api, locked(sessions, "runs"):
        answer = api.post("/v1/runs", json=body, headers=headers["operate"])
    assert_given_up(answer, "unavailable", "Another request holds")


def test_a_request_that_idles_in_its_transaction_is_given_up(
    engine: Engine, sessions: Sessions, headers: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    import server.runs.endpoints as endpoints

    def idles(session: Session, **_: Any) -> Any:
        mine = session.scalar(text("SELECT pg_backend_pid()"))
        there = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :mine")
        with sessions() as other:
            while other.scalar(there, {"mine": mine}):
                other.rollback()  # the next look is to see what is there then
        session.scalar(text("SELECT 1"))

    monkeypatch.setattr(endpoints.service, "list_runs", idles)
    with impatient(engine, idle_transaction_timeout_s=0.1) as api:
        assert_given_up(api.get("/v1/runs", headers=headers["read"]), "took-too-long", "Send it again")


def test_a_full_disk_of_the_database_is_named(
    engine: Engine, headers: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    import server.runs.endpoints as endpoints

    full = text("DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$")
    monkeypatch.setattr(endpoints.service, "list_runs", lambda session, **_: session.execute(full))
    with impatient(engine) as api:
        assert_given_up(api.get("/v1/runs", headers=headers["read"]), "unavailable", "no room left on its disk")


def test_a_connection_that_is_lost_during_the_commit_is_not_said_to_have_changed_nothing(
    engine: Engine, sessions: Sessions, headers: Headers
) -> None:
    body = {"executor": "external", "compute_unit": "steps"}
    with impatient(engine) as api:
        api.get("/v1/me", headers=headers["operate"])
        theirs = api.app.state.sessions.kw["bind"]

        def lose(connection: Connection) -> None:
            mine = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            with sessions() as other:
                other.execute(text("SELECT pg_terminate_backend(:mine, 5000)"), {"mine": mine})

        event.listen(theirs, "commit", lose)
        read = api.get("/v1/runs", headers=headers["operate"])
        made = api.post("/v1/runs", json=body, headers=headers["operate"])
    assert (made.status_code, made.json()["code"]) == (503, "unavailable")
    assert "may have stored it or not. Look before you send it again" in made.json()["detail"]
    assert "nothing was changed" in read.json()["detail"]


def test_only_the_api_is_in_a_hurry(engine: Engine) -> None:
    """A worker's statements take no longer than its task may, and a migration takes as long as it takes."""

    def limits(sessions: Sessions) -> list[str]:
        names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        with sessions() as session:
            return [session.execute(text(f"SHOW {name}")).scalar_one() for name in names]

    settings = settings_of(engine)
    for made, expected in (
        (create_api(settings).state.sessions, ["30s", "10s", "1min"]),
        (make_context(settings, lambda *_, **__: None).sessions, ["1min", "0", "1min"]),
        (sessionmaker(engine), ["0", "0", "1min"]),  # as `make_engine` makes it for migrations
    ):
        assert limits(made) == expected
        if made.kw["bind"] is not engine:
            made.kw["bind"].dispose()
