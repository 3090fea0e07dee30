"""`forecurve down` on a data directory whose lock another process has, and on one whose service is dead."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from forecurve.cli.supervisor import down as module
from forecurve.cli.supervisor.down import down
from forecurve.cli.supervisor.layout import Layout
from forecurve.cli.supervisor.lock import DataDirLock, Held

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
def layout(tmp_path: Path) -> Layout:
    layout = Layout.of(tmp_path / "data")
    layout.make()
    return layout


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
    hold({"pid": bystander.pid, "create_time": psutil.Process(bystander.pid).create_time() - 60})

    told = forecurve("down", "--data-dir", layout.data_dir)

    assert told.code == 1
    assert f"is held by pid {bystander.pid} of another machine or container; stop it there" in told.err
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_nobody_begins_while_leftovers_are_ended(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[dict[str, Any]] = []
    end_leftovers = module.end_leftovers

    def ends(of: Layout) -> list[str]:
        with pytest.raises(Held) as caught:
            DataDirLock(of.lock).acquire({}, patience_s=0.0)
        refused.append(caught.value.holder)
        return end_leftovers(of)

    monkeypatch.setattr(module, "end_leftovers", ends)
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
