"""What becomes of verifiers, and of programs under test, whose trainer is killed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainer.search_path import search_path
from trainer.verifiers import sandbox

HANGING = """
import os, re, subprocess, time

def check(response, answer):
    child = subprocess.Popen(["sleep", "600"])
    with open(answer, "w") as told:
        print(os.getpid(), child.pid, file=told)
    {hangs}
"""
TRAINER = """
import sys
from trainer.verifiers import Judges
judges = Judges({"mine": "hanging:check"}, function_seconds=600.0)
judges.passed("mine", ["a"], sys.argv[1])
"""


@pytest.mark.parametrize(
    "hangs",
    [
        pytest.param("while True: pass", id="at full CPU"),
        pytest.param("re.match('(a+)+$', 'a' * 64 + 'b')", id="in C, where no other thread gets a turn"),
        pytest.param("time.sleep(600)", id="asleep"),
    ],
)
def test_a_hung_worker_and_what_it_started_end_with_a_trainer_that_is_killed(tmp_path, hangs):
    (tmp_path / "hanging.py").write_text(HANGING.format(hangs=hangs))
    os.mkfifo(tmp_path / "told")
    path = f"{tmp_path}{os.pathsep}{search_path()}"
    trainer = subprocess.Popen(
        [sys.executable, "-c", TRAINER, str(tmp_path / "told")], env=dict(os.environ, PYTHONPATH=path)
    )
    orphans = [os.pidfd_open(int(pid)) for pid in (tmp_path / "told").read_text().split()]
    try:
        trainer.kill()
        trainer.wait()
        ended = [select.select([orphan], [], [], 20)[0] for orphan in orphans]
        assert all(ended), ended
    finally:
        for orphan in orphans:
            _kill(orphan)


SLEEPING = """
from trainer.verifiers import Judges
from trainer.verifiers.code import unit_tests
judges = Judges({"mine": "code"}, code_seconds=600.0)
program = "import time; print('asleep', flush=True); time.sleep(600)"
judges.passed("mine", [f"```python\\n{program}\\n```"], unit_tests("pass"))
"""


def test_a_program_under_test_that_sleeps_ends_with_a_trainer_that_is_killed():
    trainer = subprocess.Popen([sys.executable, "-c", SLEEPING], env=dict(os.environ, PYTHONPATH=search_path()))
    try:
        program = _sleeping_child_of(trainer)
        trainer.kill()
        ended = select.select([program], [], [], 20)[0]
        _kill(program)
        assert ended
    finally:
        trainer.kill()
        trainer.wait()


def _sleeping_child_of(trainer: subprocess.Popen[bytes]) -> int:
    """The program, when what it printed into its file says that it is asleep."""
    children = Path(f"/proc/{trainer.pid}/task")
    while trainer.poll() is None:
        for child in " ".join(file.read_text() for file in children.glob("*/children")).split():
            if "asleep" in Path(f"/proc/{child}/fd/1").read_text():
                return os.pidfd_open(int(child))
        time.sleep(0.01)
    pytest.fail("the trainer ended")


def test_a_program_whose_trainer_ended_before_the_kernel_was_asked_does_not_run(monkeypatch):
    monkeypatch.setattr(os, "getpid", os.getppid)
    ran = sandbox.run("print('ran')", seconds=20.0, memory_mb=256)
    assert (ran.well, ran.output) == (False, "")


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(process, signal.SIGKILL)
    os.close(process)
