"""The service's own processes: migrations and bootstrap once, then API, worker and scheduler."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from forecurve.client.http import certificates

from ..errors import BAD_INPUT, FAILURE
from .files import open_log, read_json, write_json
from .layout import TAG, Layout
from .options import CannotStart, UpOptions
from .parts import ProcessPart

LOOK_S = 0.25
NO_ROOM = 1 << 16
"""Bytes of a disk that is as good as full."""
BOOTSTRAP_S = 120.0
"""How long the bootstrap may take, which writes a few rows."""


def service_environment(layout: Layout, options: UpOptions, apps: Path, connections: dict[str, str]) -> dict[str, str]:
    """The environment of every process of the service.

    Args:
        connections: DATABASE_URL, REDIS_URL, FORECURVE_RAY_URL, _TOKEN and _SINCE as far as they are known, and
            FORECURVE_TRAINER_URL where the cluster is not ours.
    """
    hidden = ("RAY_ADDRESS", "FORECURVE_TOKEN", "FORECURVE_URL", "FORECURVE_RUN", "FORECURVE_ATTEMPT")
    inherited = {name: value for name, value in os.environ.items() if name not in hidden}
    chosen = {
        "FORECURVE_MAX_CONCURRENT_RUNS": str(max(1, cpu_count())),
        "FORECURVE_TRAINER_COMMAND": shlex.join([sys.executable, "-m", "trainer"]),
        "FORECURVE_TRAINER_PATH": str(apps),
        "OMP_NUM_THREADS": "1",  # a refit is small; more threads only take cores from training
        "OPENBLAS_NUM_THREADS": "1",
    }
    fixed = {
        TAG: layout.key,
        "FORECURVE_DATA_DIR": str(layout.data_dir),
        "FORECURVE_PUBLIC_URL": options.public_url,
        "FORECURVE_TRAINER_URL": options.local_url,
        "PYTHONPATH": os.pathsep.join([str(apps), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONUNBUFFERED": "1",
    }
    return chosen | inherited | fixed | connections


def cpu_count() -> int:
    """CPUs that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def run_once(module: str, env: dict[str, str], cwd: Path, log: Path, meanwhile: Callable[[float], None]) -> str:
    """Run `python -m module` to its end, however long that takes; its standard output.

    Args:
        meanwhile: called again and again until then, with the seconds so far; what it raises ends the process.

    Raises:
        CannotStart: it failed; names its log. Of a setting that cannot be meant, as of bad input.
    """
    began = time.monotonic()
    with open_log(log) as errors:
        begins = errors.tell()
        command = [sys.executable, "-m", module]
        process = subprocess.Popen(
            command,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        try:
            output = _output(process, lambda: meanwhile(time.monotonic() - began))
        except BaseException:
            process.kill()
            process.wait()
            raise
    if process.returncode:
        told = f"`python -m {module}` failed: {_last_word(log, begins, process.returncode)}; see {log}"
        raise CannotStart(told, exit_code=BAD_INPUT if process.returncode == BAD_INPUT else FAILURE)
    return output.decode()


def _last_word(log: Path, begins: int, code: int) -> str:
    """What went wrong, as the process said it: of a traceback the error, without its further lines."""
    with log.open("rb") as file:
        file.seek(begins)  # what an earlier start said there is old
        lines = [line.rstrip() for line in file.read().decode(errors="replace").splitlines()]
    said = [line for line in lines if line and not line.startswith((" ", "\t", "(Background on this error"))]
    if said:
        return said[-1].rstrip(".")
    full = shutil.disk_usage(log.parent).free < NO_ROOM  # nothing could be said there
    return "the disk of its log has no room left" if full else f"exit code {code}"


def _output(process: subprocess.Popen[bytes], meanwhile: Callable[[], None]) -> bytes:
    while True:
        try:
            return process.communicate(timeout=LOOK_S)[0]
        except subprocess.TimeoutExpired:
            meanwhile()


def bootstrap(env: dict[str, str], cwd: Path, log: Path) -> dict[str, Any]:
    """A fresh login link, and on the very first start the admin token: `{"login_url": ..., "admin_token": ...}`.

    Raises:
        CannotStart: it failed, or took longer than `BOOTSTRAP_S`.
    """

    def give_up(seconds: float) -> None:
        if seconds > BOOTSTRAP_S:
            raise CannotStart(
                f"`python -m server.access.bootstrap` was ended after {BOOTSTRAP_S:.0f} s: does the database answer? "
                f"See {log}"
            )

    output = run_once("server.access.bootstrap", env, cwd, log, give_up)
    body = json.loads(output.strip().splitlines()[-1])
    assert isinstance(body, dict)
    return body


def keep_admin_token(layout: Layout, token: str | None) -> None:
    """Keep what a bootstrap minted for the command line of this machine, readable by its owner only: whoever starts one
    gets the token, and nobody ever again."""
    if token:
        layout.data_dir.mkdir(parents=True, exist_ok=True)
        write_json(layout.secrets, read_json(layout.secrets) | {"admin_token": token})


def api_part(layout: Layout, url: str, listener: int, env: dict[str, str], apps: Path) -> ProcessPart:
    """Uvicorn with the API and the pages, on the supervisor's socket with that descriptor, which answers at `url`."""
    return ProcessPart(
        "api",
        [sys.executable, "-m", "web.serve", str(listener)],
        env=env,
        inherits=(listener,),
        cwd=apps,
        log=layout.logs / "api.log",
        ready=lambda _: api_answers(url),
        note="API and pages",
    )


def api_answers(url: str) -> bool:
    """True when the API says that its process is up."""
    try:
        return httpx.get(f"{url}/healthz", timeout=2.0, trust_env=False, verify=certificates(url)).status_code == 200
    except httpx.HTTPError:
        return False


def worker_part(layout: Layout, env: dict[str, str], apps: Path, concurrency: int) -> ProcessPart:
    """The Celery worker. Processes, not threads: only they can be stopped at a task's time limit."""
    argv = [sys.executable, "-m", "celery", "-A", "worker.app", "worker", "--pool", "prefork"]
    argv += ["--concurrency", str(concurrency), "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
    return ProcessPart(
        "worker",
        argv,
        env=env,
        cwd=apps,
        log=layout.logs / "worker.log",
        ready=lambda part: part.has_said(" ready."),
        note=f"Celery, {concurrency} process{'es' if concurrency > 1 else ''}",
        deep=True,
    )


def scheduler_part(layout: Layout, env: dict[str, str], apps: Path) -> ProcessPart:
    """Celery beat: rings the dispatcher and the reconciler."""
    argv = [sys.executable, "-m", "celery", "-A", "worker.app", "beat", "--loglevel", "INFO", "--pidfile="]
    return ProcessPart(
        "scheduler",
        argv,
        env=env,
        cwd=apps,
        log=layout.logs / "scheduler.log",
        ready=lambda part: part.has_said("beat: Starting"),
        note="Celery beat",
    )
