"""The service the demo runs on: one that is already up, or a child of ours."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..asking.connection import local_service
from ..errors import CliError
from ..supervisor.down import end_leftovers
from ..supervisor.layout import Layout
from ..supervisor.lock import Held, is_held
from ..supervisor.state import read_state
from ..supervisor.supervisor import STOPPED_S
from .console import DemoConsole

START_S = 180.0


class DemoService:
    """URL, token and login link of a running service; `stop` ends it when it is ours."""

    def __init__(self, layout: Layout, process: subprocess.Popen[str] | None, url: str, login_url: str | None):
        self.layout = layout
        self.url = url
        self.login_url = login_url
        self._process = process
        _, token = local_service(layout.data_dir)
        if not token:
            raise CliError(f"the service on {layout.data_dir} keeps no admin token; choose another --data-dir")
        self.token = token

    @property
    def is_ours(self) -> bool:
        return self._process is not None

    @property
    def has_died(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def stop(self) -> None:
        """Stop our child and wait for it; a service that was running before stays up."""
        if self._process is None:
            return
        stop_process(self._process, self.layout)


def start_or_reuse(data_dir: Path, port: int, console: DemoConsole) -> DemoService:
    """The service of the data directory; started when it is not running. CliError when it does not come up."""
    layout = Layout.of(data_dir)
    if is_held(layout.lock):
        return _reuse(layout)
    process = _spawn(data_dir, port)
    try:
        where = _wait_for_pages(process, console)
        return DemoService(layout, process, where["url"], where.get("login_url"))
    except BaseException:
        stop_process(process, layout)
        raise


def stop_process(process: subprocess.Popen[str], layout: Layout, timeout_s: float = STOPPED_S) -> None:
    """SIGTERM, and wait for the supervisor to stop its parts; one that does not is killed, and its parts are ended."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        with suppress(Held):  # by an `up` that began just now, and ends them itself
            end_leftovers(layout)


def _reuse(layout: Layout) -> DemoService:
    state = read_state(layout)
    if state.get("phase") != "running":
        raise CliError(f"a service is just starting or stopping on {layout.data_dir}; try again in a moment")
    if state["env"].get("FORECURVE_ALLOW_PRIVATE_WEBHOOKS", "").lower() not in ("1", "true", "yes", "on"):
        way_out = "stop it with `forecurve down`, or start it with FORECURVE_ALLOW_PRIVATE_WEBHOOKS=true"
        raise CliError(
            f"the service on {layout.data_dir} delivers no alerts to this machine, which the demo needs; {way_out}"
        )
    from ..showing.status import login_link

    return DemoService(layout, None, state["url"], login_link(layout.data_dir))


def _spawn(data_dir: Path, port: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "forecurve", "up", "--data-dir", str(data_dir), "--port", str(port), "--json"]
    return subprocess.Popen(
        command,
        env=os.environ | {"FORECURVE_ALLOW_PRIVATE_WEBHOOKS": "true"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a Ctrl-C is ours to handle
    )


def _wait_for_pages(process: subprocess.Popen[str], console: DemoConsole) -> dict[str, Any]:
    """Show the parts as they come up; the `where` event. Later events are read on in the background."""
    events: queue.Queue[dict[str, Any] | None] = queue.Queue()
    threading.Thread(target=_read_events, args=(process, events, console), daemon=True).start()
    while True:
        try:
            event = events.get(timeout=START_S)
        except queue.Empty:
            raise CliError(f"the service did not come up in {START_S:.0f} s") from None
        if event is None:
            raise CliError(_why_not(process))
        if event["event"] == "where":
            return event


def _read_events(
    process: subprocess.Popen[str], events: queue.Queue[dict[str, Any] | None], console: DemoConsole
) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        console.part(event)
        events.put(event)
    events.put(None)


def _why_not(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    process.wait(10)
    last = process.stderr.read().strip().splitlines()
    try:
        return str(json.loads(last[-1])["error"])
    except (IndexError, ValueError, KeyError, TypeError):
        return f"the service did not start (exit code {process.returncode}): {' '.join(last[-3:])}"
