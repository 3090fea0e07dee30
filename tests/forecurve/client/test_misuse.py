"""What a training loop may well do wrong: nothing raises, nothing is lost without a word that names it."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

import forecurve
from forecurve.client import Run
from forecurve.client.pending import MANY_POINTS
from forecurve.client.spool import Spool

from .conftest import wait_for
from .test_process_ends import _entries, _script

pytestmark = pytest.mark.usefixtures("own_directory")


class Odd:
    """As a tensor on torch's meta device: it looks like a number and is none."""

    def __float__(self) -> float:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")

    __int__ = __float__  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "odd"


def offline(tmp_path: Path, **told: Any) -> Run:
    return Run(None, 1, spool=Spool(tmp_path / "a1"), **told)


@pytest.mark.parametrize(
    ("report", "says"),
    [
        (lambda run: run.log([1, 2], step=1), "log was left out: metrics is [1, 2]; it must be a mapping"),
        (lambda run: run.log({"a": 1}, step=None), "log was left out: step is None; it must be a whole number"),
        (lambda run: run.log({"a": 1}, step=math.nan), "log was left out: step is nan; it must be a whole number"),
        (
            lambda run: run.log_checkpoint(step=1, compute=1, path="x", digest="d", size_bytes=None),
            "log_checkpoint was left out: size_bytes is None; it must be a whole number",
        ),
        (lambda run: run.log({"a": 1}, step=0.5), "log was left out: step is 0.5; it must be a whole number"),
        (lambda run: run.log({"a": 1}, step=Odd()), "log was left out: step is odd; it must be a whole number"),
        (lambda run: run.heartbeat(step=1, compute=Odd()), "heartbeat was left out: compute is odd; it must be a num"),
        (lambda run: run.heartbeat(step="one", compute=1), "heartbeat was left out: step is 'one'"),
    ],
)
def test_what_is_nothing_that_its_field_can_have_is_said_by_the_field(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, report: Any, says: str
) -> None:
    run = offline(tmp_path)
    report(run)
    run.finish()
    assert says in caplog.text


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"compute": None}, "compute is None; it must be a number"),
        ({"reward": "0.5"}, "reward is '0.5'; it must be a number from 0 to 1"),
        ({"prompts": "many"}, "prompts is 'many'; it must be a whole number"),
        ({"counts": 3}, "counts is 3; it must be a list of whole numbers"),
        ({"samples": 3.5}, "samples is 3.5; it must be a whole number"),
        ({"counts": [1, Odd()]}, "counts.1 is odd; it must be a whole number"),
        ({"counts": [1, None]}, "counts.1 is None; it must be a whole number"),
        ({"details": [1]}, "details is [1]; it must be a mapping"),
    ],
)
def test_evaluations_that_cannot_be_read_are_put_aside_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, told: dict[str, Any], says: str
) -> None:
    run = offline(tmp_path)
    for step in range(3):
        run.log_evaluation(**({"step": step, "compute": 1.0 + step, "reward": 0.5} | told))
    run.finish()
    assert f"the evaluation at step 0 is left out: {says}" in caplog.text
    assert "3 evaluations were left out" in caplog.text
    aside = [json.loads(line) for line in (tmp_path / "a1" / "rejected.jsonl").open()]
    assert [each["body"]["step"] for each in aside] == [0, 1, 2]


def test_evaluations_at_steps_with_a_fraction_are_put_aside_and_not_taken_for_one(tmp_path: Path) -> None:
    run = offline(tmp_path)
    for step in (0, 0.5, 1.0, 1.5):
        run.log_evaluation(step=step, compute=1.0 + step, reward=0.5)  # type: ignore[arg-type]
    run.finish()
    queue = [json.loads(line) for line in (tmp_path / "a1" / "queue.jsonl").open()]
    sent = [each["step"] for entry in queue for each in entry["body"].get("evaluations", ())]
    aside = [json.loads(line)["body"]["step"] for line in (tmp_path / "a1" / "rejected.jsonl").open()]
    assert (sent, aside) == ([0, 1], [0.5, 1.5])


def test_what_is_logged_once_the_run_is_finished_is_said_to_be_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = offline(tmp_path)
    run.finish()
    run.flush()
    run.heartbeat(step=1, compute=1.0)
    assert caplog.text == ""
    for _ in range(2):
        run.log({"loss": 0.5}, step=1)
        run.log_evaluation(step=1, compute=1.0, reward=0.5)
        run.log_checkpoint(step=1, compute=1.0, path="x", digest="a" * 64, size_bytes=1)
    said = [f"forecurve: {what} was left out: the run is finished" for what in ("log", "log_evaluation")]
    said.append("forecurve: log_checkpoint was left out: the run is finished")
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == said


def test_what_a_terminal_obeys_is_shown_and_not_printed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = offline(tmp_path)
    run.log({"\x1b[31mloss\n": 0.5}, step=1)
    run.finish()
    assert [record.getMessage().partition(" is ")[0] for record in caplog.records] == [
        "forecurve: metric `\ufffd[31mloss\ufffd`"
    ]


def test_a_value_that_fails_in_its_own_way_costs_its_metric_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = offline(tmp_path)
    run.log({"loss": 0.5, "odd": Odd(), "kl": 0.1}, step=1)
    run.finish()
    assert "metric `odd` is left out: Odd is no number" in caplog.text
    [points, _] = [json.loads(line) for line in (tmp_path / "a1" / "queue.jsonl").open()]
    assert [point["metric"] for point in points["body"]["points"]] == ["loss", "kl"]


def test_compute_that_cannot_be_read_does_not_cost_the_metric(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = offline(tmp_path)
    run.log({"loss": 0.5}, step=1, compute="much")  # type: ignore[arg-type]
    run.finish()
    assert "without their compute: compute is 'much'" in caplog.text
    [points, _] = [json.loads(line) for line in (tmp_path / "a1" / "queue.jsonl").open()]
    assert [(point["metric"], point["compute"]) for point in points["body"]["points"]] == [("loss", None)]


@pytest.mark.parametrize("deadline", [None, math.inf, math.nan, "soon"])
def test_however_long_the_end_is_to_take_it_is_reported(tmp_path: Path, deadline: Any) -> None:
    run = offline(tmp_path)
    run.log_evaluation(step=1, compute=1.0, reward=0.5)
    run.finish(deadline_s=deadline)
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "a1" / "queue.jsonl").open()]
    assert kinds == ["metrics", "outcome"]
    Spool(tmp_path / "a1").close()  # nobody writes there any more


def test_a_forked_process_that_reports_says_that_it_cannot(tmp_path: Path) -> None:
    log = """
import os
child = os.fork()
run.log({"loss": 1}, step=1)
if child == 0:
    run.log({"loss": 2}, step=2)
    os._exit(0)
os.waitpid(child, 0)
run.finish()
"""
    done = _script(tmp_path, log)
    assert done.stderr.count("was left out: process ") == 1, done.stderr
    assert "which reports this run" in done.stderr
    points = [point for entry in _entries(tmp_path) for point in entry["body"].get("points", ())]
    assert [point["step"] for point in points] == [1]


def test_a_run_that_nobody_holds_any_longer_loses_nothing_at_the_end(tmp_path: Path) -> None:
    again = (
        'run = forecurve.init("b", unit="steps", directory=sys.argv[1], mode=sys.argv[2])\nimport gc; gc.collect()\n'
    )
    _script(tmp_path, 'run.log({"loss": 1}, step=1)\n' + again)
    points = [point for entry in _entries(tmp_path) for point in entry["body"]["points"]]
    assert [point["metric"] for point in points] == ["loss"]


def test_a_second_run_beside_one_that_goes_on_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    first = forecurve.init("a", mode="offline")
    second = forecurve.init("a", mode="offline")
    assert first.directory is not None
    assert f"run {first.directory.parent.name}, begun before in this process, is not finished" in caplog.text
    caplog.clear()
    first.finish()
    second.finish()
    forecurve.init("a", mode="offline").finish()
    forecurve.init("a", mode="offline").finish()
    assert caplog.text == ""


def test_very_many_points_do_not_wait_for_the_next_second(tmp_path: Path) -> None:
    run = offline(tmp_path, flush_s=3600.0)
    for step in range(MANY_POINTS):
        run.log({"loss": 0.5}, step=step)
    wait_for(lambda: (tmp_path / "a1" / "queue.jsonl").stat().st_size)
    run.finish()


@pytest.mark.parametrize("told", ["argument", "environment"])
def test_a_directory_in_ones_home_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FORECURVE_DIR", "~/runs")
    run = forecurve.init("a", mode="offline", directory="~/runs" if told == "argument" else None)
    run.finish()
    assert run.directory is not None
    assert run.directory.parent.parent == tmp_path / "home" / "runs"
    assert not os.path.exists("~")
