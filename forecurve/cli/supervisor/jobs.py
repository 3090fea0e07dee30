"""Ending the jobs of our own Ray before it ends: each trainer gets SIGTERM and the time to judge, save and report.

Ray itself would take their cluster from under them, and they would notice by failing. Nor is Ray asked to stop them,
where their processes are here: a job that it calls stopped is one that somebody wanted stopped, and its run would end.
"""

from __future__ import annotations

import os
import signal
import socket
import time
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
                if not _told_to_end(job):
                    http.post(f"/api/jobs/{job['submission_id']}/stop")
            while _alive(http) and time.monotonic() < deadline:
                time.sleep(LOOK_S)
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return


def _alive(http: httpx.Client) -> list[dict[str, Any]]:
    answer = http.get("/api/jobs/").raise_for_status()
    return [job for job in answer.json() if job["status"] in ("PENDING", "RUNNING")]


def _told_to_end(job: dict[str, Any]) -> bool:
    """Whether its process is on this machine and has got SIGTERM. Ray knows that of a job that has begun to use it."""
    driver = job.get("driver_info")
    if not driver or not _is_ours(driver["node_ip_address"]):
        return False
    try:
        os.kill(int(driver["pid"]), signal.SIGTERM)
    except OSError:
        return False
    return True


def _is_ours(address: str) -> bool:
    """Whether that is an address of this machine."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind((address, 0))
    except OSError:
        return False
    return True
