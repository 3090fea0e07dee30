"""Which process it is. A pid is given to another one day; and the time at which a process began, as the wall clock has
it, moves when that clock is set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil


def start_ticks(pid: int | None) -> int | None:
    """Clock ticks from the start of the machine to that of the process; None when there is no such process.

    Field 22 of /proc/PID/stat (proc_pid_stat(5)). What stands before it in brackets may hold anything.
    """
    try:
        told = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return int(told.rpartition(b")")[2].split()[19])


def same_process(noted: Mapping[str, Any]) -> psutil.Process | None:
    """The process of which `pid` and `start_ticks` were noted, if it lives."""
    try:
        process = psutil.Process(int(noted["pid"]))
        lives = start_ticks(process.pid) == int(noted["start_ticks"]) and process.status() != psutil.STATUS_ZOMBIE
        return process if lives else None
    except (KeyError, ValueError, TypeError, psutil.Error):
        return None
