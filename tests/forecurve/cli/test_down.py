"""Stopping a service from outside: `forecurve down`, the demo, a terminal that closes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import psutil
import pytest

from forecurve.cli.demo.service import stop_process
from forecurve.cli.supervisor import leftovers
from forecurve.cli.supervisor.console import UpConsole
from forecurve.cli.supervisor.down import down
from forecurve.cli.supervisor.identity import start_ticks
from forecurve.cli.supervisor.layout import TAG, Layout
from forecurve.cli.supervisor.lock import DataDirLock, Held
from forecurve.cli.supervisor.state import UpState
from forecurve.cli.supervisor.supervisor import StopRequested, Supervisor

from .conftest import Forecurve

pytestmark = pytest.mark.usefixtures("own_short_paths")

HOLD = """
import json, sys, time
from pathlib import Path
from forecurve.cli.supervisor.lock import DataDirLock
lock = DataDirLock(Path(sys.argv[1])); lock.acquire(json.loads(sys.argv[2])); print("held", flush=True); time.sleep(60)
"""

Hold = Callable[[dict[str, Any]], subprocess.Popen[str]]


@pytest.fixture
def hold(layout: Layout) -> Iterator[Hold]:
    """Another process takes the lock and says this of itself."""
    holders = []

    def begin(says: dict[str, Any]) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", HOLD, str(layout.lock), json.dumps(says)]
        holders.append(holder := subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        return holder

    yield begin
    for holder in holders:
        holder.kill()
        holder.wait()


def test_the_supervisor_that_holds_the_lock_is_stopped(layout: Layout, hold: Hold) -> None:
    supervisor = hold({})
    assert down(layout.data_dir, 10.0).what == "service"
    assert supervisor.poll() is not None


def test_a_process_that_has_the_pid_of_a_holder_elsewhere_is_let_alone(
    layout: Layout, hold: Hold, forecurve: Forecurve
) -> None:
    """Another container that shares the folder counts its processes by itself."""
    bystander = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
    hold({"pid": bystander.pid, "start_ticks": (start_ticks(bystander.pid) or 0) - 1})

    told = forecurve("down", "--data-dir", layout.data_dir)

    assert told.code == 1
    assert f"is held by pid {bystander.pid} of another machine or container; stop it there" in told.err
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_nobody_begins_while_leftovers_are_ended(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[dict[str, Any]] = []

    def look(*_: object) -> list[psutil.Process]:
        with pytest.raises(Held) as caught:
            DataDirLock(layout.lock).acquire({}, patience_s=0.0)
        refused.append(caught.value.holder)
        return []

    monkeypatch.setattr(leftovers, "find", look)
    assert down(layout.data_dir, 1.0).what == "nothing"
    assert [holder["ends_leftovers"] for holder in refused] == [True]
    DataDirLock(layout.lock).acquire({}, patience_s=0.0)


def test_another_down_that_ends_leftovers_is_waited_for_and_not_stopped(
    layout: Layout, hold: Hold, forecurve: Forecurve
) -> None:
    other = hold({"ends_leftovers": True})
    told = forecurve("down", "--data-dir", layout.data_dir, "--timeout", "1")
    assert (told.code, other.poll()) == (1, None)
    assert f"pid {other.pid} has not stopped in 1 s" in told.err

    told = forecurve("up", "--data-dir", layout.data_dir, "--without-ray")
    assert told.code == 1
    assert "`forecurve down` is still ending what was left" in told.err


@pytest.mark.slow
def test_a_supervisor_of_the_demo_that_does_not_stop_is_killed_and_its_parts_are_ended(layout: Layout) -> None:
    script = "import signal, subprocess, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    script += "part = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'], "
    script += f"start_new_session=True, env={{{TAG!r}: {layout.key!r}}}); print(part.pid, flush=True); part.wait()"
    supervisor = subprocess.Popen([sys.executable, "-S", "-c", script], stdout=subprocess.PIPE, text=True)
    assert supervisor.stdout is not None
    part = psutil.Process(int(supervisor.stdout.readline()))

    stop_process(supervisor, layout, timeout_s=0.2)

    assert supervisor.poll() is not None
    assert not leftovers.is_alive(part)


@pytest.mark.parametrize("ignored", [True, False])
def test_a_hangup_stops_a_service_unless_it_was_started_with_nohup(layout: Layout, ignored: bool) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    others = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    state = UpState("http://x", "http://x", str(layout.data_dir), False)
    supervisor = Supervisor(layout, state, UpConsole(as_json=True))
    try:
        supervisor.obey_signals()
        signal.raise_signal(signal.SIGHUP)
        with nullcontext() if ignored else pytest.raises(StopRequested, match="SIGHUP"):
            supervisor.check()
    finally:
        for number, handler in (others | {signal.SIGHUP: before}).items():
            signal.signal(number, handler)
