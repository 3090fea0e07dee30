"""What a person sees: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import os
import pty
import re

import pytest

from forecurve.patient_output import patient
from forecurve.recipes.schema import Budget
from trainer.records.progress import BAR_WIDTH, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(budget: Budget, step: int, compute: float) -> str:
    terminal = Terminal()
    Progress(budget, terminal).show("reward 0.1", step, compute)
    return terminal.getvalue()


@pytest.mark.parametrize(
    ("step", "compute", "share"),
    [(0, 0.0, 0), (5, 15.0, 25), (50, 15.0, 50), (5, 60.0, 100), (5, 61.0, 100)],
)
def test_the_bar_is_the_share_of_the_limit_that_is_met_first(step, compute, share):
    text = shown(Budget(compute=60.0, unit="CPU-seconds", max_steps=100), step, compute)
    bar, percent = re.search(r"\[([#.]+)\] +(\d+)%", text).groups()
    assert int(percent) == share
    assert bar.count("#") == BAR_WIDTH * share // 100
    assert len(bar) == BAR_WIDTH
    assert f"step {step}  {compute:.1f} of 60 CPU-seconds  reward 0.1" in text


def test_a_terminal_that_reads_sees_what_is_going_on_after_each_line():
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        output = patient(terminal)
        progress, said = Progress(Budget(), output), b""
        for step in range(5):
            progress.evaluation(step, 2.0, 0.25)
            progress.show("it generates", step, 1.0)
            while said.count(b"it generates") <= step:
                said += os.read(ours, 4096)
    os.close(ours)


def test_elsewhere_there_is_a_line_an_evaluation_and_nothing_else():
    stream = io.StringIO()
    progress = Progress(Budget(), stream)
    progress.show("reward 0.1", 3, 1.0)
    progress.evaluation(10, 2.0, 0.25)
    progress.note("succeeded: last step 10 reached")
    first, last = stream.getvalue().splitlines()
    assert first.startswith("step    10  compute      2.0  pass rate 0.250")
    assert last == "succeeded: last step 10 reached"
    assert "\r" not in stream.getvalue()


def test_whoever_reads_may_leave():
    reading, writing = os.pipe()
    with open(writing, "w") as stream:
        progress = Progress(Budget(), stream)
        progress.evaluation(10, 2.0, 0.25)
        os.close(reading)
        progress.evaluation(20, 4.0, 0.25)
        print("somebody else's line", file=stream, flush=True)


def test_a_full_disk_costs_lines_and_no_more():
    with open("/dev/full", "w") as stream:
        Progress(Budget(), stream).evaluation(10, 2.0, 0.25)
        assert os.fstat(stream.fileno()).st_rdev == os.stat("/dev/full").st_rdev, "it may have room again"
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
