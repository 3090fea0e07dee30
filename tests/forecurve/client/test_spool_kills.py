"""A process that reports is killed before each of its steps to the disk, or its machine crashes there: what reached the
disk is taken once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from forecurve.client import spool as spools
from forecurve.client.spool import Entry, Spool
from forecurve.client.sync import _send_all
from forecurve.client.transport import Answer, Refused, Taken, Transport

STEPS_TO_DISK = frozenset({"write", "fsync", "truncate", "replace", "open", "close"})


class Service(Transport):
    """Takes a numbered batch once, none of more than two evaluations, and no step from 100 on; it remembers in a file
    what it took."""

    def __init__(self, file: Path):
        self._file = file
        self.url = "http://service"

    @property
    def batches(self) -> dict[int, Any]:
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return {body["seq"]: body for body in map(json.loads, lines)}

    @property
    def steps(self) -> list[int]:
        return sorted(each["step"] for body in self.batches.values() for each in body["evaluations"])

    def send(self, entry: Entry) -> Answer:
        body = entry.body
        steps = {each["step"] for each in body["evaluations"]}
        if before := self.batches.get(body["seq"]):
            return Taken() if before == body else Refused({"detail": "another batch has this number"})
        if len(steps) > 2:
            return Refused({"detail": "too large"}, in_part=True)
        if max(steps) >= 100:
            return Refused({"detail": "no run is so long"})
        if steps & set(self.steps):
            return Refused({"detail": "a step was evaluated already"})
        with self._file.open("a") as file:
            file.write(json.dumps(body) + "\n")
        return Taken()


def report(directory: Path, batches: list[range]) -> list[str]:
    """Log batches of evaluations, send each, and say what was refused."""
    spool, refusals = Spool(directory / "a1"), []
    for steps in batches:
        spool.seal_batch({"points": [], "evaluations": [{"step": step} for step in steps]})
        refusals += _send_all(spool, Service(directory / "taken"), "")[1]
    spool.close()
    return refusals


def killed_before(directory: Path, step: int, batches: list[range]) -> str | None:
    """Report in a process that is killed before its so-manieth step to the disk; which that was, None where it has
    fewer."""
    said, says = os.pipe()
    child = os.fork()
    if child == 0:
        left = step

        def count(frame: FrameType, event: str, called: Any) -> None:
            nonlocal left
            if event == "c_call" and called.__name__ in STEPS_TO_DISK:
                left -= 1
                if not left:
                    os.write(says, f"{called.__name__} in {Path(frame.f_code.co_filename).name}".encode())
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count)
        try:
            report(directory, batches)
        finally:
            os._exit(0)
    os.close(says)
    with open(said) as pipe:
        name = pipe.read()
    os.waitpid(child, 0)
    return name or None


def killed(directory: Path, before: str) -> None:
    """The process was killed and no more."""


def crashed_in_write(directory: Path, before: str) -> None:
    """With the machine went the end of what was not waited for."""
    files = {"fsync in spool.py": "a1/queue.jsonl", "fsync in aside.py": "a1/rejected.jsonl"}
    file = directory / files.get(before, "nothing")
    if file.exists():
        file.write_bytes(file.read_bytes()[:-10])


def crashed_with_the_note(directory: Path, before: str) -> None:
    """With the machine went the note of what was settled, which is never waited for."""
    note = directory / "a1/settled.json"
    if note.exists():
        note.write_text("")


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_wherever_its_process_ends_what_is_on_disk_is_taken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    monkeypatch.setattr(spools, "COMPACT_BYTES", 400)
    step = 1
    while before := killed_before(tmp_path / str(step), step, [range(1), range(1, 6), range(6, 9)]):
        for crash in (killed, crashed_in_write, crashed_with_the_note):
            directory = shutil.copytree(tmp_path / str(step), tmp_path / f"{step}-{crash.__name__}")
            crash(directory, before)
            service = Service(directory / "taken")
            logged = {*on_disk(directory / "a1/queue.jsonl"), *service.steps}

            refusals = report(directory, [range(9, 10)])

            assert refusals == [], directory
            assert service.steps == sorted({*logged, 9}), directory
        step += every
    assert step > 40


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_wherever_its_process_ends_what_is_refused_is_put_aside_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    monkeypatch.setattr(spools, "COMPACT_BYTES", 400)
    step = 1
    while before := killed_before(
        tmp_path / str(step), step, [range(1), range(100, 102), range(102, 105), range(1, 2)]
    ):
        for crash in (killed, crashed_in_write, crashed_with_the_note):
            directory = shutil.copytree(tmp_path / str(step), tmp_path / f"{step}-{crash.__name__}")
            crash(directory, before)
            logged = {*on_disk(directory / "a1/queue.jsonl"), *put_aside(directory)}

            report(directory, [range(105, 106)])

            assert put_aside(directory) == sorted({*(each for each in logged if each >= 100), 105}), directory
        step += every
    assert step > 40


@pytest.mark.parametrize("every", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_wherever_its_process_ends_a_damaged_line_is_put_aside_once(tmp_path: Path, every: int) -> None:
    report(tmp_path / "whole", [range(1), range(1, 2), range(100, 101)])
    queue = tmp_path / "whole/a1/queue.jsonl"
    queue.write_bytes(queue.read_bytes().replace(b'"step":1}', b'"st\xffp":1}'))
    step = 1
    while (directory := shutil.copytree(tmp_path / "whole", tmp_path / str(step))) and killed_before(
        directory, step, [range(2, 3)]
    ):
        report(directory, [range(3, 4)])

        aside = [json.loads(line) for line in (directory / "a1/rejected.jsonl").read_text().splitlines()]
        assert sorted(each.get("kind", "damaged") for each in aside) == ["damaged", "metrics"], directory
        step += every
    assert step > 10


def put_aside(directory: Path) -> list[int]:
    """Steps of the evaluations that were put aside."""
    file = directory / "a1/rejected.jsonl"
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    return sorted(each["step"] for line in whole for each in json.loads(line)["body"]["evaluations"])


def on_disk(queue: Path) -> list[int]:
    """Steps of the evaluations in whole lines of the queue."""
    lines = queue.read_bytes().splitlines(keepends=True) if queue.exists() else []
    bodies = [json.loads(line)["body"] for line in lines if line.endswith(b"\n")]
    return [each["step"] for body in bodies for each in body.get("evaluations", ())]
