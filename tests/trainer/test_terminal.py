"""What a run says is read by somebody, who may leave."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import yaml

from forecurve.recipes import SCALERL, with_changes

from .conftest import SMALL

TRAINER = [sys.executable, "-m", "trainer"]


def test_a_run_goes_on_when_its_terminal_is_closed(tmp_path: Path) -> None:
    recipe, out = tmp_path / "recipe.yaml", tmp_path / "a"
    recipe.write_text(yaml.safe_dump(with_changes(SCALERL, SMALL).to_dict()))
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [*TRAINER, "--recipe", str(recipe), "--out", str(out), "--no-ray"])
    said = b""
    while b"pass rate" not in said:
        said += os.read(terminal, 1000)
    os.close(terminal)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert json.loads((out / "outcome.json").read_text())["outcome"] == "succeeded"
    assert [json.loads(line)["step"] for line in (out / "evaluations.jsonl").open()] == [0, 2, 4, 6]


def test_help_that_nobody_reads_to_its_end_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run([*TRAINER, "--help"], stdout=writing, stderr=subprocess.PIPE, env=buffered, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
