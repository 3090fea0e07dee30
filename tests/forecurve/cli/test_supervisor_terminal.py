"""The supervisor whose terminal is stopped."""

from __future__ import annotations

import os
import pty
from pathlib import Path

import psutil
import pytest

from forecurve.cli.supervisor.console import UpConsole
from forecurve.cli.supervisor.layout import Layout
from forecurve.cli.supervisor.restarts import RestartPolicy
from forecurve.cli.supervisor.state import UpState
from forecurve.cli.supervisor.supervisor import Supervisor

from .test_supervisor import killed_and_started_again


@pytest.mark.timeout(60)
def test_a_terminal_that_is_stopped_keeps_nobody_from_tending_and_stopping_the_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout.of(tmp_path)
    layout.make()
    state = UpState("http://x", "http://x", str(tmp_path), False)
    hasty = lambda: RestartPolicy(first_s=0.01)  # noqa: E731
    ours, theirs = pty.openpty()
    os.write(ours, b"\x13")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        supervisor = Supervisor(layout, state, UpConsole(as_json=False), policies=hasty)
        tended = killed_and_started_again(supervisor, state, tmp_path)
        supervisor.stop_all()
        assert not psutil.pid_exists(tended)
        os.write(ours, b"\x11")
        said = b""
        while b"part ended unexpectedly" not in said:
            said += os.read(ours, 4096)
    os.close(ours)
