"""A Ray head on this machine: loopback only, behind a token, its Jobs API over HTTP.

Ray turns a loopback node address into the machine's outward one and then listens on every interface; the
variable it has for desktops (RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0) keeps every port on loopback on Linux too.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import httpx

from forecurve.client.http import certificates

from .files import kept_secret
from .jobs import END_S, end_jobs
from .layout import TAG, Layout
from .options import CannotStart
from .parts import ProcessPart

PORTS = ["ray_gcs", "ray_dashboard", "ray_client", "ray_autoscaler_metrics", "ray_dashboard_metrics"]
OBJECT_STORE_BYTES = 256 << 20
"""Weights of the testbed are under a megabyte; the store need not take a third of the memory."""


class RayPart(ProcessPart):
    """The head. Its jobs end before it does."""

    def __init__(self, url: str, token: str, argv: list[str], **options: Any):
        super().__init__("ray", argv, **options)
        self._url, self._token = url, token

    def stop(self, grace_s: float) -> None:
        if self.is_alive():
            end_jobs(self._url, self._token, END_S + 2.0)
        super().stop(grace_s)


def ray_part(layout: Layout, ports: dict[str, int], cpus: int) -> tuple[ProcessPart, str, str]:
    """The part, the URL of its Jobs API, and its token."""
    token = kept_secret(layout.secrets, "ray_token")
    url = f"http://127.0.0.1:{ports['ray_dashboard']}"
    shutil.rmtree(layout.ray, ignore_errors=True)  # sessions of earlier starts
    part = RayPart(
        url,
        token,
        _command(layout, ports, cpus),
        env=_environment(layout, ports, token),
        cwd=layout.short,
        log=layout.logs / "ray.log",
        ready=lambda part: part.has_said("Ray runtime started") and jobs_api_answers(url, token),
        note=f"head with {cpus} CPUs",
        deep=True,
    )
    return part, url, token


def jobs_api_answers(url: str, token: str | None) -> bool:
    """True when the Jobs API lists jobs for this token."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx.get(f"{url}/api/jobs/", headers=headers, timeout=2.0, trust_env=False, verify=certificates(url))
        return answer.status_code == 200
    except httpx.HTTPError:
        return False


def _command(layout: Layout, ports: dict[str, int], cpus: int) -> list[str]:
    options = {
        "node-ip-address": "127.0.0.1",
        "port": ports["ray_gcs"],
        "dashboard-host": "127.0.0.1",
        "dashboard-port": ports["ray_dashboard"],
        "ray-client-server-port": ports["ray_client"],
        "dashboard-agent-listen-port": 0,
        "dashboard-agent-grpc-port": 0,
        "runtime-env-agent-port": 0,
        "metrics-export-port": 0,
        "num-cpus": cpus,
        "object-store-memory": OBJECT_STORE_BYTES,
        "temp-dir": layout.ray,
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    return [ray_binary(), "start", "--head", "--block", "--disable-usage-stats", *flags]


def ray_binary() -> str:
    """The command that starts Ray: the one beside this Python, else the one on the PATH.

    Raises:
        CannotStart: there is none, or its path has blanks, which Ray leaves to a shell when it starts its parts.
    """
    beside = Path(sys.executable).parent / "ray"
    found = str(beside) if beside.exists() else shutil.which("ray")
    if found is None:
        raise CannotStart("there is no command `ray`: pip install 'forecurve[all]', or start --without-ray")
    if len(found.split()) > 1:
        way_out = "install into a virtual environment elsewhere, or start --without-ray"
        raise CannotStart(f"Ray does not start from a path with blanks, and it is at {found}; {way_out}")
    return found


def _environment(layout: Layout, ports: dict[str, int], token: str) -> dict[str, str]:
    """The caller's environment without the service's secrets: what a job can read, any recipe can read."""
    hidden = ("DATABASE_URL", "REDIS_URL", "RAY_ADDRESS", "FORECURVE_TOKEN", "FORECURVE_RAY_TOKEN")
    inherited = {name: value for name, value in os.environ.items() if name not in hidden}
    return inherited | {
        TAG: layout.key,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_JOB_STOP_WAIT_TIME_S": f"{END_S:g}",
        "RAY_USAGE_STATS_ENABLED": "0",
        "AUTOSCALER_METRIC_PORT": str(ports["ray_autoscaler_metrics"]),
        "DASHBOARD_METRIC_PORT": str(ports["ray_dashboard_metrics"]),
        "PYTHONUNBUFFERED": "1",
    }
