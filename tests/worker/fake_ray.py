"""A stand-in for the Jobs API of a Ray head: a real HTTP server with the answers that Ray 2.60 was seen to give.

It runs nothing: tests say how jobs fare, and how the API misbehaves.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "the-cluster's-token"


class FakeRay:
    """Jobs by submission id; `submissions` counts what was accepted.

    Attributes:
        hang: a submission is accepted, but its answer is held back until `let_go`.
        fails_with: (status, text) answered to every submission instead of accepting it.
        blind: every look at jobs and every stop answers 500, as a head does whose agent restarts.
        unreadable: jobs whose logs are answered with 500, as of one that printed what is no UTF-8.
        trickle_s: seconds between two bytes of a log.
        cannot_end: stops are answered, and end nothing.
        before_answer: called after a submission was accepted and before it is answered.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.submissions: list[str] = []
        self.stops: list[str] = []
        self.hang = False
        self.fails_with: tuple[int, str] | None = None
        self.blind = False
        self.unreadable: set[str] = set()
        self.trickle_s = 0.0
        self.cannot_end = False
        self.before_answer: Any = None
        self.logs: dict[str, str] = {}
        self._let_go = threading.Event()
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen; after `stop`, on the same port again."""
        fake = self

        class Handler(_Handler):
            ray = fake

        ThreadingHTTPServer.daemon_threads = True
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections, as a head that is down."""
        self._let_go.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def let_go(self) -> None:
        self._let_go.set()

    def set(self, reference: str, status: str, **fields: Any) -> None:
        """Say how a job is: `status`, `message`, `error_type`, `driver_exit_code`."""
        self.jobs[reference] |= {"status": status, **fields}

    def forget(self) -> None:
        """The cluster was restarted: it knows no job."""
        self.jobs.clear()

    def submit(self, body: dict[str, Any]) -> tuple[int, str]:
        if self.fails_with is not None:
            return self.fails_with
        reference = body["submission_id"]
        with self._lock:
            if reference in self.jobs:
                return 500, f"Traceback (most recent call last):\nValueError: Job with {reference} already exists.\n"
            self.jobs[reference] = {
                "type": "SUBMISSION",
                "submission_id": reference,
                "status": "PENDING",
                "entrypoint": body["entrypoint"],
                "message": "Job has not started yet.",
                "error_type": None,
                "metadata": body.get("metadata"),
                "runtime_env": body.get("runtime_env"),
                "driver_exit_code": None,
            }
            self.submissions.append(reference)
        if self.before_answer is not None:
            self.before_answer(reference)
        if self.hang:
            self._let_go.wait(30)
        return 200, json.dumps({"job_id": reference, "submission_id": reference})

    def end(self, reference: str) -> tuple[int, str]:
        if reference not in self.jobs:
            return 404, f"Job {reference} does not exist"
        self.stops.append(reference)
        alive = self.jobs[reference]["status"] in ("PENDING", "RUNNING") and not self.cannot_end
        if alive:
            self.set(reference, "STOPPED", message="Job was intentionally stopped.")
        return 200, json.dumps({"stopped": alive})


class _Handler(BaseHTTPRequestHandler):
    ray: FakeRay
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body of each answer waits 40 ms until its head is acknowledged

    def do_GET(self) -> None:
        if not self._allowed():
            return
        if self.ray.blind:
            self._answer(500, "Internal Server Error")
        elif self.path == "/api/jobs/":
            self._answer(200, json.dumps(list(self.ray.jobs.values())))
        elif self.path.endswith("/logs"):
            reference = self.path.split("/")[-2]
            if reference in self.ray.unreadable:
                self._answer(500, "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff")
            else:
                self._answer(200, json.dumps({"logs": self.ray.logs.get(reference, "")}), self.ray.trickle_s)
        else:
            reference = self.path.split("/")[-1]
            job = self.ray.jobs.get(reference)
            self._answer(200, json.dumps(job)) if job else self._answer(404, f"Job {reference} does not exist")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if not self._allowed():
            return
        if self.path == "/api/jobs/":
            self._answer(*self.ray.submit(json.loads(body)))
        elif self.ray.blind:
            self._answer(500, "Internal Server Error")
        else:
            self._answer(*self.ray.end(self.path.split("/")[-2]))

    def _allowed(self) -> bool:
        if self.headers.get("authorization") == f"Bearer {TOKEN}":
            return True
        self._answer(403, "Forbidden: Invalid authentication token")
        return False

    def _answer(self, status: int, text: str, trickle_s: float = 0.0) -> None:
        body = text.encode()
        try:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            for at in range(len(body)) if trickle_s else ():
                self.wfile.write(body[at : at + 1])
                time.sleep(trickle_s)
            self.wfile.write(b"" if trickle_s else body)
        except OSError:
            pass  # the client has given up

    def log_message(self, *_: Any) -> None:
        pass
