"""`forecurve up` from the lock to the last process's end."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import leftovers
from .cluster import given_cluster
from .console import UpConsole
from .files import kept_ports
from .jobs import END_S
from .layout import Layout, apps_dir
from .listener import listen
from .lock import DataDirLock, Held
from .options import CannotStart, UpOptions, check, not_allowed, unusable
from .postgres import PostgresPart
from .ray import PORTS as RAY_PORTS
from .ray import ray_binary, ray_part
from .redis import redis_part
from .services import (
    api_part,
    bootstrap,
    cpu_count,
    keep_admin_token,
    run_once,
    scheduler_part,
    service_environment,
    worker_part,
)
from .state import UpState, read_state
from .supervisor import StopRequested, Supervisor

STILL_S = 15.0
"""Between two words that the migrations still run."""


def up(options: UpOptions, console: UpConsole) -> int:
    """Run the service until it is asked to stop; the exit code.

    Raises:
        CannotStart: the options are not allowed, or a part did not come up.
    """
    layout = Layout.of(options.data_dir)
    lock = _locked(layout)
    try:
        return _run(layout, options, console, lock)
    finally:
        console.leave()
        lock.release()
        with suppress(OSError):
            layout.short.rmdir()  # empty when nothing was started


def _locked(layout: Layout) -> DataDirLock:
    """The data directory's lock, taken; the directory is made where it is not there."""
    lock = DataDirLock(layout.lock)
    try:
        layout.make()
        lock.acquire({"started_at": time.time()})
    except Held as held:
        raise _held(layout, held.holder) from None
    except OSError as error:
        raise unusable(layout, error) from None
    return lock


def _run(layout: Layout, options: UpOptions, console: UpConsole, lock: DataDirLock) -> int:
    console.began(_version(), str(layout.data_dir))
    _end_leftovers(layout, console)
    check(options, layout)
    listener = listen(options)
    options = replace(options, port=listener.getsockname()[1])
    cluster = given_cluster(options)
    if options.with_ray and not cluster:
        ray_binary()  # before anything is started
    lock.describe({"started_at": time.time(), "url": options.local_url})
    state = UpState(options.local_url, options.public_url, str(layout.data_dir), options.with_ray)
    supervisor = Supervisor(layout, state, console)
    supervisor.obey_signals()
    began = None
    try:
        _start(layout, options, listener, cluster, supervisor, state, console)
        supervisor.watch()
    except StopRequested:
        pass
    finally:
        began = time.monotonic()
        note = f"; trainers have {END_S:.0f} s to write a checkpoint" if "ray" in state.parts else ""
        console.stopping(supervisor.why or "could not go on", note)
        supervisor.stop_all()
        listener.close()
        with suppress(FileNotFoundError):
            layout.state.unlink()
    console.stopped(time.monotonic() - began)
    return 1 if supervisor.failed else 0


def _start(
    layout: Layout,
    options: UpOptions,
    listener: socket.socket,
    cluster: dict[str, str],
    supervisor: Supervisor,
    state: UpState,
    console: UpConsole,
) -> None:
    """Start every part; returns once the page can be opened. Ray and the worker may still be booting then."""
    apps = apps_dir()
    connections = cluster or _start_ray(layout, options, supervisor)
    env = service_environment(layout, options, apps, connections)
    postgres = _start_postgres(layout, supervisor)
    env["REDIS_URL"] = _start_redis(layout, supervisor, env)
    supervisor.wait_ready(*(name for name in ("postgres", "redis") if name in state.parts))
    env["DATABASE_URL"] = postgres.url if postgres else os.environ["DATABASE_URL"]
    state.env = _needed_by_helpers(env)

    _migrate(layout, supervisor, env, apps, console)
    access = bootstrap(env, apps, layout.logs / "bootstrap.log")
    keep_admin_token(layout, access.get("admin_token"))
    _refuse_open_door(options, access.get("admin_token"))
    supervisor.launch(api_part(layout, options.local_url, listener.fileno(), env, apps))
    supervisor.wait_ready("api")  # alone, so that the page is up soon on a small machine
    supervisor.launch(worker_part(layout, env, apps, options.workers))
    supervisor.launch(scheduler_part(layout, env, apps))
    state.phase = "running"
    state.write(layout)
    console.where(options.public_url, access.get("login_url"), access.get("admin_token"), str(layout.secrets))


def _start_ray(layout: Layout, options: UpOptions, supervisor: Supervisor) -> dict[str, str]:
    """A Ray of our own, or none."""
    if not options.with_ray:
        return {}
    cpus = max(2, cpu_count())
    part, url, token = ray_part(layout, kept_ports(layout.ports, RAY_PORTS), cpus)
    since = datetime.now(UTC).isoformat()
    supervisor.launch(part)
    found = {"FORECURVE_RAY_URL": url, "FORECURVE_RAY_TOKEN": token, "FORECURVE_RAY_SINCE": since}
    return found | {"FORECURVE_CLUSTER_CPUS": str(cpus)}


def _start_redis(layout: Layout, supervisor: Supervisor, env: dict[str, str]) -> str:
    given = os.environ.get("REDIS_URL")
    if given:
        return given
    part, url = redis_part(layout, kept_ports(layout.ports, ["redis"])["redis"], env)
    supervisor.launch(part)
    return url


def _start_postgres(layout: Layout, supervisor: Supervisor) -> PostgresPart | None:
    """A database of our own; None where one was given."""
    if os.environ.get("DATABASE_URL"):
        return None
    part = PostgresPart(layout)
    try:
        supervisor.launch(part)
    except subprocess.SubprocessError:
        raise CannotStart(f"PostgreSQL did not start; see {part.start_log} and {part.log}") from None
    return part


def _migrate(layout: Layout, supervisor: Supervisor, env: dict[str, str], apps: Path, console: UpConsole) -> None:
    """However large the database is; an upgrade that is cut short begins anew at the next start."""
    began, log = time.monotonic(), layout.logs / "migrate.log"
    said = 0

    def meanwhile(seconds: float) -> None:
        nonlocal said
        supervisor.check()
        supervisor.tend()
        if seconds >= STILL_S * (said + 1):
            said += 1
            console.still_runs("migrations", seconds, str(log))

    supervisor.check()
    run_once("server.migrate", env, apps, log, meanwhile)
    console.ready("migrations", time.monotonic() - began)
    supervisor.check()


def _refuse_open_door(options: UpOptions, minted: str | None) -> None:
    """A database that had no token until now must not be opened to other machines in the same breath."""
    if minted and not options.is_local:
        raise not_allowed(
            f"the admin token was minted just now: {minted}\nKeep it, then start again with --allow-remote"
        )


def _end_leftovers(layout: Layout, console: UpConsole) -> None:
    """End what a supervisor that was killed left running. The database is not ended but taken over."""
    found = leftovers.find(layout.key, read_state(layout))
    if found:
        names = sorted({process.name() for process in found if leftovers.is_alive(process)})
        leftovers.end(found)
        console.left(names)


def _needed_by_helpers(env: dict[str, str]) -> dict[str, str]:
    """What a process started by another command needs to work on the same database."""
    names = ("DATABASE_URL", "REDIS_URL", "PYTHONPATH")
    kept = {name: value for name, value in env.items() if name.startswith("FORECURVE_") or name in names}
    kept.pop("FORECURVE_UP", None)
    return kept


def _held(layout: Layout, holder: dict[str, Any]) -> CannotStart:
    if holder.get("ends_leftovers"):
        return CannotStart(
            f"`forecurve down` is still ending what was left on {layout.data_dir}; try again in a moment"
        )
    url = holder.get("url", "still starting")
    who = f"a Forecurve is already running on {layout.data_dir} (pid {holder.get('pid', '?')}, {url})"
    return not_allowed(f"{who}; see `forecurve status`, stop it with `forecurve down`, or choose another --data-dir")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("forecurve")
    except PackageNotFoundError:
        return "(source)"
