"""Who writes waits for no reader; who reads late sees what was held."""

from __future__ import annotations

import io
import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from forecurve import patient_output
from forecurve.cli.supervisor.console import UpConsole
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


def test_what_is_too_much_is_left_out_by_whole_lines_and_counted(pipe: tuple[int, TextIO]) -> None:
    reading, stream = pipe
    output = patient(stream)
    lines = 2 * (MOST_HELD // 101)
    for _ in range(lines):
        print("x" * 100, file=output, flush=True)
    said, there, left_out = "", 0, 0
    while there + left_out < lines:
        said += os.read(reading, 1 << 16).decode()
        there = len(re.findall(r"^x{100}\n", said, re.MULTILINE))
        left_out = sum(map(int, re.findall(r"^\((\d+) lines? (?:is|are) left out: .*\n", said, re.MULTILINE)))
    assert (there + left_out, there + said.count("left out")) == (lines, said.count("\n"))
    assert there * 101 >= MOST_HELD
    print("and on", file=output)
    assert read(reading, 7) == "and on\n"


def test_what_is_long_is_left_out_only_where_nobody_reads(pipe: tuple[int, TextIO]) -> None:
    reading, stream = pipe
    output = patient(stream)
    output.write("x" * 2 * MOST_HELD + "\n")
    assert read(reading, 2 * MOST_HELD + 1).endswith("x\n")


def test_a_line_is_written_as_a_whole_and_its_beginning_when_it_is_flushed(
    pipe: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    monkeypatch.setattr(os, "write", lambda fd, text: written.append(bytes(text)) or len(text))
    output = patient(pipe[1])
    print("a", "line", file=output)
    print("begun", end="", file=output, flush=True)
    output.writelines(["and ", "ended\n"])
    output.write("no end")
    leave(output, 30)
    assert written == [b"a line\n", b"begun", b"and ended\n", b"no end"]


def test_a_terminal_that_others_made_answer_at_once_is_waited_for_too(pipe: tuple[int, TextIO]) -> None:
    reading, stream = pipe
    os.set_blocking(stream.fileno(), False)
    output = patient(stream)
    print("x" * FULL, file=output)
    print("and on", file=output)
    assert read(reading, FULL + 8).endswith("x\nand on\n")


def test_a_stream_that_is_not_there_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    said = io.StringIO()
    monkeypatch.setattr(sys, "stdout", said)
    console = UpConsole(as_json=False)
    console.began("1", "here")
    console.leave()
    assert said.getvalue() == ""


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
