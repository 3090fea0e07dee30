"""Processes of a data directory whose supervisor is gone: finding them, ending them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import psutil

from .identity import same_process
from .layout import TAG


def find(key: str, state: dict[str, Any] | None = None) -> list[psutil.Process]:
    """Every process marked with this data directory's key or named in its last state, and all that descend from one.

    Redis and some of Ray's workers overwrite their environment with their title: the first is known from the
    state, the others as descendants. The database is never among them.
    """
    marked = [process for process in psutil.process_iter() if _is_marked(process, key)]
    return family([*marked, *_recorded(state or {})])


def family(roots: Iterable[psutil.Process]) -> list[psutil.Process]:
    """The living among the processes and their descendants, without ourselves."""
    members = {process.pid: process for process in roots}
    for root in list(members.values()):
        with suppress(psutil.Error):
            members |= {child.pid: child for child in root.children(recursive=True)}
    members.pop(os.getpid(), None)
    return [process for process in members.values() if is_alive(process)]


def end(processes: Iterable[psutil.Process], *, grace_s: float = 3.0) -> None:
    """SIGTERM, then SIGKILL for what is left after the grace."""
    alive = [process for process in processes if is_alive(process)]
    for process in alive:
        with suppress(psutil.Error):
            process.terminate()
    _, stubborn = psutil.wait_procs(alive, timeout=grace_s)
    kill(stubborn)


def kill(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL, and wait until they are gone."""
    alive = [process for process in processes if is_alive(process)]
    for process in alive:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=3.0)


def is_alive(process: psutil.Process) -> bool:
    """Running and no zombie."""
    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _recorded(state: dict[str, Any]) -> list[psutil.Process]:
    """The parts of a state that still are the very same processes."""
    found = []
    for part in state.get("parts", {}).values():
        process = same_process(part)
        if process is not None and part.get("name") != "postgres":
            found.append(process)
    return found


def _is_marked(process: psutil.Process, key: str) -> bool:
    try:
        return bool(process.pid != os.getpid() and process.environ().get(TAG) == key)
    except (psutil.Error, OSError):
        return False
