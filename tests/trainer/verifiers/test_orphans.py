"""What becomes of verifiers whose trainer is killed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys

import pytest

from trainer.search_path import search_path

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


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(process, signal.SIGKILL)
    os.close(process)
