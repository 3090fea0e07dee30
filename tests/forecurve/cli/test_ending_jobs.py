"""Before our own Ray ends its jobs are told to: those on this machine by a signal, others by Ray."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from forecurve.cli.supervisor.jobs import end_jobs

SAVES = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
time.sleep(60)
"""


class JobsApi:
    """Ray's Jobs API as far as it is asked, of one job whose process is real."""

    def __init__(self, process: subprocess.Popen[str], driver: dict[str, str] | None):
        self.process, self.driver = process, driver
        self.stopped: list[str] = []

    def jobs(self) -> list[dict[str, object]]:
        status = "RUNNING" if self.process.poll() is None else "FAILED"
        return [
            {"submission_id": "run_1-a1", "status": status, "driver_info": self.driver},
            {"submission_id": "run_0-a1", "status": "SUCCEEDED", "driver_info": None},
        ]

    def stop(self, path: str) -> None:
        self.stopped.append(path)
        self.process.kill()


@contextmanager
def answering(api: JobsApi) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(api.jobs())

        def do_POST(self) -> None:
            api.stop(self.path)
            self._answer({"stopped": True})

        def _answer(self, what: object) -> None:
            body = json.dumps(what).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def a_trainer() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", SAVES], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_a_job_of_this_machine_gets_the_signal_itself_and_is_waited_for() -> None:
    with a_trainer() as process:
        api = JobsApi(process, {"node_ip_address": "127.0.0.1", "pid": str(process.pid)})
        with answering(api) as url:
            end_jobs(url, "token", 20)
        assert process.wait(5) == 7
        assert api.stopped == []


def test_a_job_of_another_machine_is_stopped_by_ray() -> None:
    with a_trainer() as process:
        api = JobsApi(process, {"node_ip_address": "192.0.2.7", "pid": "1"})
        with answering(api) as url:
            end_jobs(url, "token", 20)
        assert api.stopped == ["/api/jobs/run_1-a1/stop"]


def test_a_job_that_has_not_begun_to_use_ray_is_left_to_end_with_it() -> None:
    """Ray would call it stopped, as if somebody had wanted that."""
    with a_trainer() as process:
        api = JobsApi(process, None)
        with answering(api) as url:
            end_jobs(url, "token", 20)
        assert api.stopped == []
        assert process.poll() is None
