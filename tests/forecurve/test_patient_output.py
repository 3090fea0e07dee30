"""Who writes waits for no reader; who reads late sees what was held."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from forecurve import patient_output
from forecurve.patient_output import MOST_HELD, is_behind, leave, patient

FULL = 1 << 17
"""Characters, of which a pipe takes only some."""


@pytest.fixture
def pipe() -> Iterator[tuple[int, TextIO]]:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        yield reading, stream
    os.close(reading)


def read(pipe: int, size: int) -> str:
    found = b""
    while len(found) < size:
        found += os.read(pipe, size - len(found))
    return found.decode()


def test_what_is_not_read_is_held_and_read_later_in_order(pipe: tuple[int, TextIO]) -> None:
    reading, stream = pipe
    output = patient(stream)
    print("x" * FULL, file=output, flush=True)
    print("é", file=output, flush=True)
    assert is_behind(output)
    assert read(reading, FULL + 4) == "x" * FULL + "\né\n"
    leave(output, 30)
    assert not is_behind(output)
    print("after", file=output, flush=True)
    assert read(reading, 6) == "after\n"


def test_what_is_too_much_is_counted(pipe: tuple[int, TextIO]) -> None:
    reading, stream = pipe
    output = patient(stream)
    line = "x" * 1023 + "\n"
    lines = 2 * (MOST_HELD // len(line))
    for _ in range(lines):
        output.write(line)
    said = ""
    while is_behind(output):
        said += read(reading, len(line))
    output.write("and on\n")
    leave(output, 30)
    said += os.read(reading, 1 << 20).decode()
    found = re.fullmatch(r"((?:x+\n)+)\((\d+) lines are left out: too many were not read\)\nand on\n", said)
    assert found is not None
    assert found[1].count("\n") + int(found[2]) == lines
    assert len(found[1]) >= MOST_HELD


def test_nobody_waits_for_long_at_the_end(pipe: tuple[int, TextIO]) -> None:
    output = patient(pipe[1])
    output.write("x" * FULL)
    leave(output, 0.01)
    assert is_behind(output)


def test_a_reader_who_left_is_told_of_and_no_fault(pipe: tuple[int, TextIO]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    told, faults = threading.Event(), []
    with os.fdopen(writing, "w") as stream:
        output = patient(stream, lambda error: (faults.append(error), told.set()))
        output.write("nobody\n")
        assert told.wait(30)
    assert isinstance(faults[0], BrokenPipeError)


def test_a_process_that_is_forked_writes_by_itself(pipe: tuple[int, TextIO]) -> None:
    reading, stream = pipe
    output = patient(stream)
    child = os.fork()
    if child == 0:
        print("child", file=output, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    assert read(reading, 6) == "child\n"


def test_a_file_makes_nobody_wait_and_stays_as_it_is(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream:
        assert patient(stream) is stream
    assert patient_output.patient(stream) is stream
