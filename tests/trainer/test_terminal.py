"""What a run says is read by somebody, who may leave."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from forecurve.recipes import SCALERL, with_changes

from .conftest import SMALL

CTRL_S, CTRL_Q = b"\x13", b"\x11"
TRAINER = [sys.executable, "-m", "trainer"]


def started(folder: Path) -> tuple[int, int]:
    """A run and its terminal, once it has said something."""
    recipe = folder / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(with_changes(SCALERL, SMALL).to_dict()))
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [*TRAINER, "--recipe", str(recipe), "--out", str(folder / "a"), "--no-ray"])
    said = b""
    while b"pass rate" not in said:
        said += os.read(terminal, 1000)
    return child, terminal


def check_done(child: int, out: Path) -> None:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert json.loads((out / "outcome.json").read_text())["outcome"] == "succeeded"
    assert [json.loads(line)["step"] for line in (out / "evaluations.jsonl").open()] == [0, 2, 4, 6]


def test_a_run_goes_on_when_its_terminal_is_closed(tmp_path: Path) -> None:
    child, terminal = started(tmp_path)
    os.close(terminal)
    check_done(child, tmp_path / "a")


@pytest.mark.timeout(120)
def test_a_run_goes_on_when_its_terminal_is_stopped(tmp_path: Path) -> None:
    child, terminal = started(tmp_path)
    os.write(terminal, CTRL_S)
    check_done(child, tmp_path / "a")
    os.close(terminal)


@pytest.mark.timeout(120)
def test_who_lets_a_stopped_terminal_go_on_sees_what_was_said(tmp_path: Path) -> None:
    child, terminal = started(tmp_path)
    os.write(terminal, CTRL_S)
    while not (tmp_path / "a/outcome.json").exists():
        time.sleep(0.05)
    os.write(terminal, CTRL_Q)
    said = b""
    with suppress(OSError):  # of a terminal whose process is over
        while more := os.read(terminal, 1000):
            said += more
    check_done(child, tmp_path / "a")
    assert b"step     6" in said
    os.close(terminal)


def test_help_that_nobody_reads_to_its_end_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run([*TRAINER, "--help"], stdout=writing, stderr=subprocess.PIPE, env=buffered, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.timeout(60)
def test_what_others_say_at_the_end_does_not_wait_for_a_stopped_terminal() -> None:
    code = (
        "import atexit, sys\n"
        "from trainer import terminal\n"
        "terminal._LEAVE_S = 0.1\n"
        "atexit.register(lambda: print('as colorama does for Ray', flush=True))\n"
        "terminal.outlive_it()\n"
        "terminal.say('done', sys.stderr)\n"
        "terminal.leave()\n"
    )
    ours, theirs = pty.openpty()
    os.write(ours, CTRL_S)
    assert subprocess.run([sys.executable, "-c", code], stdout=theirs, stderr=theirs, check=False).returncode == 0
    os.close(theirs)
    os.close(ours)
