"""Which service a command talks to, and whom it shows the local admin token."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forecurve.cli.asking.connection import service
from forecurve.cli.errors import CliError
from forecurve.cli.supervisor.files import write_json
from forecurve.cli.supervisor.identity import start_ticks

URL = "http://127.0.0.1:8400"


def left(data_dir: Path, pid: int) -> None:
    """What a supervisor keeps there."""
    write_json(data_dir / "state.json", {"url": URL, "pid": pid, "start_ticks": start_ticks(pid)})
    write_json(data_dir / "secrets.json", {"admin_token": "fc_api_admin"})


def test_a_service_that_runs_here_is_the_one(tmp_path: Path) -> None:
    left(tmp_path, os.getpid())
    assert service(None, None, tmp_path) == (URL, "fc_api_admin")
    assert service("https://elsewhere.example", "fc_api_theirs", tmp_path) == (
        "https://elsewhere.example",
        "fc_api_theirs",
    )
    with pytest.raises(CliError, match=r"no token for https://elsewhere\.example"):
        service("https://elsewhere.example", None, tmp_path)


def test_what_a_killed_service_left_is_none_and_its_token_goes_nowhere(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    left(tmp_path, process.pid)
    process.kill()
    process.communicate()
    with pytest.raises(CliError, match="no service is running"):
        service(None, None, tmp_path)
    with pytest.raises(CliError, match="no token for"):
        service(URL, None, tmp_path)
