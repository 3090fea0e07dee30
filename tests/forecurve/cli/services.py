"""A real `forecurve up` as a process of its own, for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil


class UpProcess:
    """`forecurve up --json` on a data directory; collects its events.

    Args:
        entry: how Python starts the command.
        environment: beside `clean_environment`.
    """

    def __init__(
        self,
        data_dir: Path,
        *flags: str,
        entry: Sequence[str] = ("-m", "forecurve"),
        environment: Mapping[str, str] = {},
    ):
        command = [sys.executable, *entry, "up", "--json", "--data-dir", str(data_dir), "--port", "0"]
        self.data_dir = data_dir
        self.events: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            [*command, *flags],
            env=clean_environment() | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, event: str, seconds: float = 120.0, **fields: Any) -> dict[str, Any]:
        """The event with these fields, once it came."""

        def find() -> dict[str, Any] | None:
            wanted = {"event": event} | fields
            return next((seen for seen in self.events if wanted.items() <= seen.items()), None)

        wait_until(lambda: find() or self.process.poll() is not None, seconds)
        found = find()
        assert found is not None, f"up ended: {self.process.stderr and self.process.stderr.read()}"
        return found

    def stop(self, signal_number: int, seconds: float = 60.0) -> int:
        """Send a signal; the exit code."""
        self.process.send_signal(signal_number)
        return self.process.wait(seconds)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))


def clean_environment() -> dict[str, str]:
    """The environment without what would lead to another service."""
    names = ("DATABASE_URL", "REDIS_URL", "RAY_ADDRESS", "RAY_AUTH_TOKEN")
    return {
        name: value for name, value in os.environ.items() if name not in names and not name.startswith("FORECURVE_")
    }


def wait_until(condition: Callable[[], Any], seconds: float = 60.0, every: float = 0.05) -> Any:
    """What `condition` gives once it is not None or False, looked at `every` so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value is not None and value is not False:
            return value
        time.sleep(every)
    raise AssertionError(f"it did not happen in {seconds} s")


def processes_of(data_dir: Path) -> list[str]:
    """Command lines of living processes that belong to a data directory: by its path, its short path, or its mark."""
    from forecurve.cli.supervisor.layout import TAG, Layout

    layout = Layout.of(data_dir)
    needles = (str(layout.data_dir), str(layout.short))
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                continue
            line = " ".join(process.cmdline())
            marked = process.environ().get(TAG) == layout.key
        except psutil.Error:
            continue
        if marked or any(needle in line for needle in needles):
            found.append(f"{process.pid} {line[:120]}")
    return found
