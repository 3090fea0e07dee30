"""What is put aside, in a file that may be large."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from forecurve.client import aside
from forecurve.client.aside import Aside

ANSWER = {"detail": "no"}
TOLD = b'{"n":0,"answer":{"detail":"no"}}\n'


@pytest.mark.parametrize("there", [b"", b'{"n":1,"answer":{}}\n', b'{"n":1,"answer":{}}\n{"n":2,"answer":{}}\n'])
@pytest.mark.parametrize("half", [b"", b"{", b"x" * 15, b"x" * 16, b"x" * 17, b"x" * 100])
def test_a_line_that_a_crash_left_half_written_is_cut_off(
    there: bytes, half: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aside, "_BLOCK", 16)
    file = tmp_path / "rejected.jsonl"
    file.write_bytes(there + half)
    Aside(file).add({"n": 0}, ANSWER)
    assert file.read_bytes() == there + TOLD


def test_of_a_large_file_only_the_end_is_read_to_cut_off_half_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rejected.jsonl"
    file.write_bytes(b'{"n":1,"answer":{}}\n' * 100_000 + b'{"n":')
    read = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: read.append(size) or pread(fd, size, at))
    Aside(file).add({"n": 0}, ANSWER)
    assert sum(read) <= aside._BLOCK
    assert file.read_bytes().endswith(b'{}}\n{"n":0,"answer":{"detail":"no"}}\n')


def test_who_puts_aside_waits_for_nobody_who_reads_what_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Aside(tmp_path / "rejected.jsonl")
    kept.add({"n": 1}, ANSWER)
    reads, go_on, thing_of = threading.Event(), threading.Event(), aside._thing_of

    def slow(line: bytes) -> str | None:
        reads.set()
        assert go_on.wait(30)
        return thing_of(line)

    monkeypatch.setattr(aside, "_thing_of", slow)
    reader = threading.Thread(target=kept.add_once, args=({"n": 1}, ANSWER))
    reader.start()
    assert reads.wait(30)
    kept.add({"n": 2}, ANSWER)  # would wait for ever
    go_on.set()
    reader.join(30)
    assert [json.loads(line)["n"] for line in kept.path.read_text().splitlines()] == [1, 2]
