"""How the process of a training loop ends: by a signal, by an exception, by the end of its script."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import FaultyService

BEGINS = """
import faulthandler, signal, sys, time
import forecurve
faulthandler.dump_traceback_later(20, exit=True)
run = forecurve.init("a", unit="steps", directory=sys.argv[1], mode=sys.argv[2], url=sys.argv[3])
"""
LOGS = """
run.log_evaluation(step=1, compute=1, reward=0.5)
run.log({"loss": 1}, step=1)
"""
CREATED = {"id": "run_1", "attempt": 1, "ingest_token": "for-reports"}
pytestmark = pytest.mark.usefixtures("fresh")


def test_a_handler_of_a_signal_logs_and_finishes_whatever_it_interrupts(tmp_path: Path) -> None:
    done = _script(
        tmp_path,
        """
handled = 0
def handle(signum, frame):
    global handled
    handled += 1
    run.log({"signals": handled}, step=handled)
    run.flush(0)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
ends = time.monotonic() + 1.5
step = 0
while time.monotonic() < ends:
    step += 1
    run.log({"loss": 1, "reward": 0.5}, step=step)
    if step % 100 == 0:
        run.log_evaluation(step=step, compute=step, reward=0.5)
signal.setitimer(signal.ITIMER_REAL, 0)
run.log({"signals": handled}, step=handled)
run.finish("lost", "pre-empted")
""",
    )

    assert done.returncode == 0, done.stderr
    assert [entry["kind"] for entry in _entries(tmp_path)][-1] == "outcome"


@pytest.mark.parametrize("end", ["", "raise RuntimeError('boom')", "sys.exit(3)"], ids=["end", "raised", "exit"])
def test_what_a_script_logs_last_is_not_lost_though_it_finishes_nothing(tmp_path: Path, end: str) -> None:
    _script(tmp_path, LOGS + end)

    [points, evaluation] = sorted(_entries(tmp_path), key=lambda entry: len(entry["body"]["evaluations"]))
    assert [point["metric"] for point in points["body"]["points"]] == ["loss"]
    assert [each["step"] for each in evaluation["body"]["evaluations"]] == [1]


def test_at_the_end_of_a_script_the_service_gets_what_is_left_and_the_run_stays_open(
    tmp_path: Path, service: FaultyService
) -> None:
    service.answer = lambda path, body: (201, CREATED, {}) if path == "/v1/runs" else (200, {}, {})

    done = _script(tmp_path, LOGS, mode="online", url=service.url)

    assert [point["metric"] for body in service.bodies("metrics") for point in body["points"]] == ["loss"]
    assert (service.bodies("outcome"), done.stderr) == ([], "")


def test_a_script_that_ends_while_the_service_refuses_says_how_its_reports_are_sent(
    tmp_path: Path, service: FaultyService
) -> None:
    service.answer = lambda path, body: (201, CREATED, {}) if path == "/v1/runs" else (503, {"detail": "busy"}, {})
    quick = "forecurve.client.leaving.LEAVE_S = 0.5\n"

    done = _script(tmp_path, quick + LOGS, mode="online", url=service.url)

    assert f"were not taken in time; they are kept in {tmp_path}/run_1/a1" in done.stderr
    assert f"forecurve sync {tmp_path}/run_1" in done.stderr


def test_a_run_that_is_finished_at_exit_is_finished(tmp_path: Path) -> None:
    _script(tmp_path, "import atexit; atexit.register(lambda: run.finish('failed'))\n" + LOGS)

    assert [entry["body"].get("outcome") for entry in _entries(tmp_path)][-1] == "failed"


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        ("pass", "succeeded"),
        ("sys.exit()", "succeeded"),
        ("sys.exit(0)", "succeeded"),
        ("sys.exit(3)", "failed"),
        ("sys.exit('no')", "failed"),
        ("raise KeyboardInterrupt", "stopped"),
        ("raise RuntimeError('boom')", "failed"),
    ],
)
def test_how_a_block_is_left_tells_the_outcome(tmp_path: Path, end: str, outcome: str) -> None:
    _script(tmp_path, f"with run: {end}")

    [entry] = _entries(tmp_path)
    assert entry["body"]["outcome"] == outcome


def _script(
    directory: Path, text: str, *, mode: str = "offline", url: str = "http://127.0.0.1:9"
) -> subprocess.CompletedProcess[str]:
    """Run a training script in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", BEGINS + text, str(directory), mode, url], capture_output=True, text=True, check=False
    )


def _entries(directory: Path) -> list[dict[str, Any]]:
    """What the script has left on disk."""
    return [json.loads(line) for queue in directory.glob("*/a1/queue.jsonl") for line in queue.open()]
