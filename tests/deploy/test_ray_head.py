"""The container's Ray head ends its jobs before it ends Ray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

RAY = """#!/bin/sh
trap 'echo "ray ended" >> "$SAID"; exit 0' TERM
echo "ray $*" >> "$SAID"
while :; do sleep 0.05; done
"""


class JobsApi(ThreadingHTTPServer):
    """One job, which ends as soon as it is asked to, and tells the file `said`."""

    def __init__(self, said: Path):
        super().__init__(("127.0.0.1", 0), _Answers)
        self.said, self.status, self.tokens = said, "RUNNING", set[str | None]()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answers(BaseHTTPRequestHandler):
    server: JobsApi

    def do_GET(self) -> None:
        elsewhere = {"node_ip_address": "192.0.2.7", "pid": "1"}  # where no signal of ours reaches: Ray ends it
        self._answer([{"submission_id": "run_1", "status": self.server.status, "driver_info": elsewhere}])

    def do_POST(self) -> None:
        self.server.status = "STOPPED"
        with self.server.said.open("a") as said:
            said.write(f"{self.path}\n")
        self._answer({})

    def _answer(self, answer: object) -> None:
        self.server.tokens.add(self.headers["Authorization"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def jobs_api(tmp_path: Path) -> Iterator[JobsApi]:
    with JobsApi(tmp_path / "said") as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_jobs_end_before_ray_does(jobs_api: JobsApi, tmp_path: Path) -> None:
    ray = tmp_path / "ray"
    ray.write_text(RAY)
    ray.chmod(0o755)
    given = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path.cwd()),
        "SAID": str(jobs_api.said),
        "RAY_AUTH_TOKEN": "a-token",
        "RAY_JOB_STOP_WAIT_TIME_S": "20",
        "RAY_API_SERVER_ADDRESS": jobs_api.url,
    }
    with subprocess.Popen([sys.executable, "deploy/ray_head.py", "--disable-usage-stats"], env=given) as head:
        deadline = time.monotonic() + 60
        while not jobs_api.said.exists() and head.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        head.send_signal(signal.SIGTERM)
        assert head.wait(60) == 0
    began, stopped, ended = jobs_api.said.read_text().splitlines()
    assert began == "ray start --head --block --disable-usage-stats"
    assert stopped == "/api/jobs/run_1/stop"
    assert ended == "ray ended"
    assert jobs_api.tokens == {"Bearer a-token"}
