"""The service in tests of the client: the real API, and a real HTTP server whose answers a test decides."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy.orm import Session, sessionmaker

from forecurve.client import Run, starting, tracking
from forecurve.client.heart import Heart
from server.access.service import mint
from tests.conftest import Clock
from tests.forecurve.serving import served

Answer = tuple[int, Any, dict[str, str]]


class FaultyService:
    """Takes reports over HTTP; `answer(path, body)` decides what is said. Remembers every request and what it took."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.answer: Callable[[str, dict[str, Any]], Answer] = lambda path, body: (200, {}, {})
        self.heartbeat_status = 200
        self.heartbeat: dict[str, Any] = {"stop": False, "reason": None, "interval_s": 0.05}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def bodies(self, door: str) -> list[dict[str, Any]]:
        """Bodies received at `/v1/runs/{id}/{door}`, in order."""
        return [body for path, body, _ in self.requests if path.endswith("/" + door)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                service.requests.append((self.path, body, dict(self.headers)))
                if self.path.endswith("/heartbeat"):
                    self.reply(service.heartbeat_status, service.heartbeat, {})
                else:
                    self.reply(*service.answer(self.path, body))

            def do_GET(self) -> None:
                service.requests.append((self.path, {}, dict(self.headers)))
                self.reply(*service.answer(self.path, {}))

            def reply(self, status: int, body: Any, headers: dict[str, str]) -> None:
                text = json.dumps(body).encode()
                self.send_response(status)
                for name, value in {
                    "Content-Type": "application/json",
                    "Content-Length": str(len(text)),
                    **headers,
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args: Any) -> None:
                pass

        return Handler


@pytest.fixture
def service() -> Iterator[FaultyService]:
    service = FaultyService()
    yield service
    service.close()


@pytest.fixture
def real_service(application: FastAPI, sessions: sessionmaker[Session], clock: Clock) -> Iterator[tuple[str, str]]:
    """URL and an operator's token of the real API."""
    application.dependency_overrides = {}
    with sessions.begin() as session:
        _, secret = mint(session, kind="api", name="test", scopes=["operate"], now=clock.now)
    with served(application) as url:
        yield url, secret


@pytest.fixture(autouse=True)
def hearts_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With their test: they would else beat on, one day at a port that another test's server has got."""
    hearts, start = [], Heart.start

    def noted(heart: Heart) -> None:
        hearts.append(heart)
        start(heart)

    monkeypatch.setattr(Heart, "start", noted)
    yield
    for heart in hearts:
        heart.close(0.0)


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: no run, no setting of the environment, and a working directory of the test's own."""
    launchers = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_STEP_ID", "SLURM_NTASKS", "SLURM_PROCID")
    for name in [*(name for name in os.environ if name.startswith("FORECURVE_")), *launchers]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tracking, "_current", None)
    monkeypatch.setattr(starting, "AWAY_S", 0.0)


@pytest.fixture
def own_directory(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs are kept that name no directory."""
    directory = tmp_path / "forecurve"
    monkeypatch.setenv("FORECURVE_DIR", str(directory))
    return directory


def kill(run: Run) -> None:
    """End a run as the end of its process does: no outcome, and nothing writes its folder any more."""
    assert run._outbox is not None
    run._outbox.close(0.1)
    if run._earlier:
        run._earlier.close(0.0)


def wait_for(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    """What `condition` gives once it is true; AssertionError when it is not in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")
