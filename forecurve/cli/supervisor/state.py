"""What a running service says of itself on disk, for `status`, `down` and the other commands."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from .files import read_json, write_json
from .identity import start_ticks
from .layout import Layout


@dataclass
class PartState:
    """One part: starting, running, restarting, stopped or failed."""

    name: str
    note: str = ""
    state: str = "starting"
    pid: int | None = None
    start_ticks: int | None = None  # tells the process from a later one with the same pid
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
    start_ticks: int | None = field(default_factory=lambda: start_ticks(os.getpid()))
    started_at: float = field(default_factory=time.time)
    phase: str = "starting"  # starting, running, stopping
    parts: dict[str, PartState] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)

    def write(self, layout: Layout) -> None:
        write_json(layout.state, asdict(self))


def read_state(layout: Layout) -> dict[str, Any]:
    """The last state on disk, {} when there is none. It may be of a supervisor that died; see `identity`."""
    return read_json(layout.state)
