"""What a running service says of itself on disk, for `status`, `down` and the other commands."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil

from .files import read_json, write_json
from .layout import Layout


@dataclass
class PartState:
    """One part: starting, running, restarting, stopped or failed."""

    name: str
    note: str = ""
    state: str = "starting"
    pid: int | None = None
    create_time: float | None = None  # tells the process from a later one with the same pid
    since: float = field(default_factory=time.time)
    restarts: int = 0
    seconds: float | None = None  # from start to ready


@dataclass
class UpState:
    """The whole: who supervises, where the API is, the parts, and the environment that a helper process needs."""

    url: str
    public_url: str
    data_dir: str
    with_ray: bool
    pid: int = field(default_factory=os.getpid)
    create_time: float = field(default_factory=lambda: float(psutil.Process().create_time()))
    started_at: float = field(default_factory=time.time)
    phase: str = "starting"  # starting, running, stopping
    parts: dict[str, PartState] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)

    def write(self, layout: Layout) -> None:
        write_json(layout.state, asdict(self))


def create_time(pid: int | None) -> float | None:
    """When the process was created, or None when it is gone."""
    try:
        return None if pid is None else float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def read_state(layout: Layout) -> dict[str, Any]:
    """The last state on disk, {} when there is none. It may be of a supervisor that died; see `supervisor_process`."""
    return read_json(layout.state)


def supervisor_process(state: dict[str, Any]) -> psutil.Process | None:
    """The living supervisor that wrote the state, or the lock, or None."""
    try:
        process = psutil.Process(int(state["pid"]))
        same = abs(process.create_time() - float(state["create_time"])) < 1.0
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except (KeyError, ValueError, TypeError, psutil.Error):
        return None
