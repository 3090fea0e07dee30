"""Ending the jobs of our own Ray before it ends: each trainer gets SIGTERM and the time to judge, save and report.

Ray itself would take their cluster from under them, and they would notice by failing. Nor is Ray asked to stop them,
where their processes are here: a job that it calls stopped is one that somebody wanted stopped, and its run would end.
A job that has not begun to use Ray has nothing to save, and ends with it.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from typing import Any

import httpx

END_S = 30.0
"""From SIGTERM to SIGKILL of a job; Ray's own default of 3 s cuts a checkpoint short."""
LOOK_S = 0.2


def end_jobs(url: str, token: str, within_s: float) -> None:
    """End every job, and wait until all have ended. A Ray that does not answer is not waited for."""
    deadline = time.monotonic() + within_s
    headers = {"Authorization": f"Bearer {token}"}
    try:
        with httpx.Client(base_url=url, headers=headers, timeout=5.0, trust_env=False) as http:
            for job in _alive(http):
                if job.get("driver_info"):
                    _tell_to_end(http, job["submission_id"], job["driver_info"])
            while any(job.get("driver_info") for job in _alive(http)) and time.monotonic() < deadline:
                time.sleep(LOOK_S)
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return


def _alive(http: httpx.Client) -> list[dict[str, Any]]:
    answer = http.get("/api/jobs/").raise_for_status()
    return [job for job in answer.json() if job["status"] in ("PENDING", "RUNNING")]


def _tell_to_end(http: httpx.Client, job: str, driver: dict[str, Any]) -> None:
    """A signal to its process, if that is on this machine; else by way of Ray. One that fails keeps no other."""
    with suppress(httpx.HTTPError, OSError, ValueError, KeyError):
        if _is_ours(driver["node_ip_address"]):
            os.kill(int(driver["pid"]), signal.SIGTERM)
        else:
            http.post(f"/api/jobs/{job}/stop")


def _is_ours(address: str) -> bool:
    """Whether that is an address of this machine."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind((address, 0))
    except OSError:
        return False
    return True
