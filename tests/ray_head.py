"""A real Ray head for tests: token authentication, free ports, a directory of its own, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from forecurve.cli.supervisor.files import free_port

START_S = 200


@dataclass(frozen=True)
class RayHead:
    """Where the Jobs API listens, and the token it wants."""

    url: str
    token: str


@pytest.fixture(scope="session")
def ray_head() -> Iterator[RayHead]:
    """A head with two CPUs. Its directory is short: Ray's socket paths must fit into 107 bytes."""
    home = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
    head = RayHead(f"http://127.0.0.1:{free_port()}", secrets.token_hex(16))
    process = _start(head, home)
    try:
        _wait_until_ready(head, process, home)
        yield head
    finally:
        _end(process, home)
        shutil.rmtree(home, ignore_errors=True)


def _start(head: RayHead, home: Path) -> subprocess.Popen[bytes]:
    command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--disable-usage-stats"]
    command += ["--dashboard-host=127.0.0.1", f"--dashboard-port={httpx.URL(head.url).port}", f"--port={free_port()}"]
    command += [f"--dashboard-agent-listen-port={free_port()}", f"--temp-dir={home}", "--num-cpus=2"]
    command += ["--object-store-memory=80000000"]
    ours = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": head.token, "RAY_DISABLE_IMPORT_WARNING": "1"}
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")} | ours
    with (home / "out").open("wb") as out:
        return subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)


def _wait_until_ready(head: RayHead, process: subprocess.Popen[bytes], home: Path) -> None:
    """Ready is a head that takes a job: it answers on its port seconds before it has an agent to start one."""
    ends = time.monotonic() + START_S
    while time.monotonic() < ends and process.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if _takes_a_job(head):
                return
        time.sleep(0.3)
    raise AssertionError(f"Ray did not start:\n{(home / 'out').read_text()[-3000:]}")


def _takes_a_job(head: RayHead) -> bool:
    headers = {"Authorization": f"Bearer {head.token}"}
    job = {"submission_id": "warm-up", "entrypoint": "true"}
    answer = httpx.post(f"{head.url}/api/jobs/", json=job, headers=headers, timeout=60)
    return answer.is_success or "already exists" in answer.text


def _end(process: subprocess.Popen[bytes], home: Path) -> None:
    """Ray's processes leave its process group, so they are found by the directory that all of them name."""
    family = _family(process, home)
    for member in family:
        _signal(member.terminate)
    _, alive = psutil.wait_procs(family, timeout=8)
    for member in {*alive, *_family(process, home)}:
        _signal(member.kill)
    process.wait(10)


def _family(process: subprocess.Popen[bytes], home: Path) -> set[psutil.Process]:
    found: set[psutil.Process] = set()
    for candidate in psutil.process_iter(["cmdline"]):
        if any(str(home) in part for part in candidate.info["cmdline"] or []):
            found.add(candidate)
    with contextlib.suppress(psutil.NoSuchProcess):
        found.update(psutil.Process(process.pid).children(recursive=True))
    return found


def _signal(send: object) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        send()  # type: ignore[operator]
