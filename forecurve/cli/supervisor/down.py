"""`forecurve down`: ask the supervisor to stop; when it is dead, end what it left."""

from __future__ import annotations

import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ..errors import CliError
from . import leftovers
from .identity import same_process
from .layout import Layout
from .lock import DataDirLock, Held, is_held
from .options import unusable
from .postgres import running_pid, stop_server
from .state import read_state


@dataclass(frozen=True)
class Stopped:
    """What was stopped: the service, leftovers of a dead one, or nothing."""

    what: str
    seconds: float
    sentence: str


def down(data_dir: Path, timeout_s: float) -> Stopped:
    """Stop the service of a data directory; what a dead one left is ended, while no other `up` may begin.

    Args:
        timeout_s: seconds that the service has to stop.

    Raises:
        CliError: it does not end in time, or it is not ours to stop; or the directory cannot be used.
    """
    layout = Layout.of(data_dir)
    began = time.monotonic()
    try:
        ended = end_leftovers(layout)
    except Held as held:
        _stop_supervisor(layout, held.holder, timeout_s)
        seconds = time.monotonic() - began
        return Stopped("service", seconds, f"Stopped in {seconds:.1f} s.")
    except OSError as error:
        raise unusable(layout, error) from None
    seconds = time.monotonic() - began
    if ended:
        return Stopped("leftovers", seconds, f"Its supervisor had died; ended what was left: {', '.join(ended)}.")
    return Stopped("nothing", seconds, f"Nothing is running on {layout.data_dir}.")


def end_leftovers(layout: Layout) -> list[str]:
    """End every process of a dead supervisor, the database last and cleanly. Their names.

    Raises:
        Held: a living supervisor has the directory.
    """
    lock = DataDirLock(layout.lock)
    if layout.data_dir.exists():  # of one that was removed the processes may be left
        lock.acquire({"ends_leftovers": True})
    try:
        return _end_leftovers(layout)
    finally:
        lock.release()


def _end_leftovers(layout: Layout) -> list[str]:
    found = leftovers.find(layout.key, read_state(layout))
    names = sorted({process.name() for process in found if leftovers.is_alive(process)})
    leftovers.end(found)
    if running_pid(layout.postgres) is not None:
        stop_server(layout.postgres, 15.0)
        names.append("postgres")
    layout.state.unlink(missing_ok=True)
    shutil.rmtree(layout.short, ignore_errors=True)
    return names


def _stop_supervisor(layout: Layout, holder: dict[str, Any], timeout_s: float) -> None:
    pid = holder.get("pid")
    if not isinstance(pid, int):
        raise CliError(f"{layout.lock} is held, but does not say by whom; is another user running a service there?")
    supervisor = same_process(holder)
    if supervisor is None and is_held(layout.lock):
        raise CliError(f"{layout.lock} is held by pid {pid} of another machine or container; stop it there")
    if supervisor is None:
        return
    if not holder.get("ends_leftovers"):  # another `down` ends by itself
        _ask_to_stop(supervisor)
    deadline = time.monotonic() + timeout_s
    while is_held(layout.lock):
        if time.monotonic() > deadline:
            raise CliError(f"pid {pid} has not stopped in {timeout_s:.0f} s; look into {layout.logs}, then try again")
        time.sleep(0.1)
    psutil.wait_procs([supervisor], timeout=5.0)


def _ask_to_stop(supervisor: psutil.Process) -> None:
    try:
        supervisor.send_signal(signal.SIGTERM)
    except psutil.NoSuchProcess:
        return
    except psutil.AccessDenied:
        raise CliError(f"pid {supervisor.pid} belongs to another user; stop it as that user") from None
