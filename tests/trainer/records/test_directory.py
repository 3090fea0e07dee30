"""The run's directory: one run, one process, every step once, and an exit code that says whether anything was kept."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forecurve.recipes import Recipe
from trainer.__main__ import main, run_attached
from trainer.errors import ConfigurationError, TrainerError
from trainer.launch import train
from trainer.records import checkpoint as checkpoints
from trainer.records.run_lock import writing

from ..test_runs import JOB, FakeRun, launch, lines


def steps(directory: Path) -> list[int]:
    """Of all lines but the closing ones."""
    return [line["step"] for line in lines(directory, "metrics.jsonl") if "train/reward" in line["metrics"]]


@pytest.fixture
def command(recipe, tmp_path) -> Callable[..., list[str]]:
    """Arguments that run a small recipe in `tmp_path/run`, with some fields replaced."""

    def make(*more: str, **changes) -> list[str]:
        body: Recipe = recipe({name.replace("__", "."): value for name, value in changes.items()})
        (tmp_path / "recipe.json").write_text(json.dumps(body.to_dict()))
        return ["--recipe", str(tmp_path / "recipe.json"), "--out", str(tmp_path / "run"), "--no-ray", *more]

    return make


def test_what_is_printed_tells_attempt_place_and_checkpoints(command, tmp_path, capsys):
    assert main(command(budget__compute=2)) == 0
    first = capsys.readouterr().err.splitlines()
    assert main(command("--resume", budget__compute=2)) == 0
    again = capsys.readouterr().err.splitlines()
    assert "attempt 1 begins at step 0, on " in first[0]
    assert first[0].endswith(f", in {(tmp_path / 'run').resolve()}")
    assert "step     2  checkpoint in step_000002" in first
    assert "attempt 2 begins at step 2, on " in again[0]


def killed_before_its_first_checkpoint(wanted: Recipe, directory: Path) -> None:
    train(wanted, launch(directory))
    shutil.rmtree(directory / "checkpoints")
    (directory / "outcome.json").unlink()


def test_a_run_that_died_before_its_first_checkpoint_is_not_mixed_with_another(command, recipe, tmp_path, capsys):
    killed_before_its_first_checkpoint(recipe({"budget.compute": 3}), tmp_path / "run")
    before = (tmp_path / "run/metrics.jsonl").read_bytes()
    assert main(command()) == 2
    assert "already holds a run, which has no checkpoint yet; start it over with --resume" in capsys.readouterr().err
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == before
    assert main(command("--resume", budget__compute=4)) == 0
    assert steps(tmp_path / "run") == [1, 2, 3, 4]
    assert {line["attempt"] for line in lines(tmp_path / "run", "metrics.jsonl")} == {2}
    assert "no checkpoint to resume from; starting at step 0" in capsys.readouterr().err


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_a_run_whose_checkpoints_are_all_damaged_is_left_as_it_is(command, recipe, tmp_path, capsys, resume):
    train(recipe({"budget.compute": 3}), launch(tmp_path / "run"))
    (tmp_path / "run/checkpoints/step_000003/learner.safetensors").write_bytes(b"")
    before = (tmp_path / "run/metrics.jsonl").read_bytes()
    assert main(command(*resume, budget__compute=3)) == 2
    assert "whose checkpoints are all damaged (step_000003); bring one back" in capsys.readouterr().err
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("flag", ["--fork", "--resume"])
def test_a_run_without_a_checkpoint_gives_way_to_no_other(command, recipe, tmp_path, capsys, flag):
    train(recipe({"budget.compute": 3}), launch(tmp_path / "parent"))
    killed_before_its_first_checkpoint(recipe({"budget.compute": 3}), tmp_path / "run")
    before = (tmp_path / "run/metrics.jsonl").read_bytes()
    assert main(command(flag, str(tmp_path / "parent"), budget__compute=3)) == 2
    assert "which has no checkpoint yet; choose another" in capsys.readouterr().err
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == before


def test_a_directory_is_written_by_one_process_at_a_time(command, tmp_path, capsys):
    with writing(tmp_path / "run"):
        assert main(command()) == 2
        assert "where another process is training" in capsys.readouterr().err
        assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]
    assert main(command()) == 0


def test_the_lock_of_a_process_that_was_killed_is_free(command, tmp_path):
    running = subprocess.Popen(
        [sys.executable, "-m", "trainer", *command(budget__compute=1e6)],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while not (tmp_path / "run/metrics.jsonl").exists():
        assert running.poll() is None
        time.sleep(0.05)
    with pytest.raises(ConfigurationError, match="another process is training"), writing(tmp_path / "run"):
        pass
    running.kill()
    running.wait()
    with writing(tmp_path / "run"):
        pass


def test_a_job_waits_for_the_process_of_the_attempt_before(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr("trainer.__main__.LEAVING_S", 0.1)
    run = FakeRun(recipe({"budget.compute": 2}).to_dict(), attempt=2)
    with writing(tmp_path), pytest.raises(ConfigurationError, match="another process is training"):
        run_attached(run, tmp_path, JOB)
    [(outcome, reason)] = run.of("finish")
    assert (outcome, "another process" in reason) == ("failed", True)
    assert run_attached(FakeRun(recipe({"budget.compute": 2}).to_dict(), attempt=2), tmp_path, JOB) == 0


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A disk on which no file grows beyond `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [8192, 0])
def test_a_run_of_which_a_full_disk_keeps_nothing_fails_and_says_so(command, tmp_path, capsys, size):
    arguments = command(budget__compute=3)
    with files_of_at_most(size):
        assert main(arguments) == 1
    said = capsys.readouterr().err
    assert "failed: could not write the checkpoint of step 3" in said
    assert "the last weights are not kept" in said
    assert "Traceback" not in said
    assert checkpoints.newest_valid(tmp_path / "run/checkpoints") is None
    if size:
        assert json.loads((tmp_path / "run/outcome.json").read_text())["outcome"] == "failed"
    else:
        assert "outcome.json cannot be written" in said
        assert not (tmp_path / "run/outcome.json").exists()


def test_lines_that_the_disk_refuses_to_the_end_fail_the_run(recipe, tmp_path, monkeypatch):
    class Refusing(FakeRun):
        """From step 1 on the file of evaluations takes no lines."""

        def log(self, metrics, *, step, compute):
            super().log(metrics, step=step, compute=compute)
            if step == 1:
                (tmp_path / "evaluations.jsonl").unlink()
                (tmp_path / "evaluations.jsonl").mkdir()

    monkeypatch.setattr("trainer.records.json_lines.os.truncate", lambda path, size: None)
    run = Refusing(None)
    with pytest.raises(TrainerError, match=r"last 2 lines of .*evaluations.jsonl could not be written; free the disk"):
        train(recipe({"budget.compute": 3}), launch(tmp_path), run)
    assert [outcome for outcome, _ in run.of("finish")] == ["failed"]
    assert checkpoints.newest_valid(tmp_path / "checkpoints").step == 3


@pytest.mark.parametrize("out", ["/proc/forecurve", "{file}", "{file}/run"])
def test_a_directory_that_cannot_be_written_is_refused_with_the_way_out(command, tmp_path, capsys, out):
    (tmp_path / "file").write_text("")
    place = out.format(file=tmp_path / "file")
    assert main([*command(), "--out", place]) == 2
    assert f"--out is '{place}', which cannot be written" in capsys.readouterr().err


def test_a_cache_that_cannot_be_written_is_named(command, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORECURVE_CACHE", "/proc/forecurve")
    assert main(command(model__width=32)) == 2
    assert "FORECURVE_CACHE is '/proc/forecurve', where no base model can be kept" in capsys.readouterr().err


def killed_at(directory: Path, step: int) -> None:
    """A finished run as if it had been killed right after `step`: its only checkpoint is of step 2."""
    for path in (directory / "checkpoints").iterdir():
        if path.name != "step_000002":
            shutil.rmtree(path)
    kept = [line for line in (directory / "metrics.jsonl").read_text().splitlines() if json.loads(line)["step"] <= step]
    (directory / "metrics.jsonl").write_text("".join(line + "\n" for line in kept))


def test_what_every_attempt_loses_is_waste_whatever_the_unit(recipe, tmp_path):
    fields = {"checkpoint.every_steps": 2, "checkpoint.keep_last": 9}

    def spent() -> list[float]:
        """Seconds of generating, learning and judging from the checkpoint on, by step."""
        roles = ("ledger/generator", "ledger/learner", "ledger/evaluation")
        totals = {
            line["step"]: sum(line["metrics"][role] for role in roles)
            for line in lines(tmp_path, "metrics.jsonl")
            if "train/reward" in line["metrics"]
        }
        return [total - totals[2] for _, total in sorted(totals.items())]

    train(recipe(fields), launch(tmp_path))
    killed_at(tmp_path, 5)
    first = spent()[-1]
    train(recipe(fields), launch(tmp_path, resume=True))
    killed_at(tmp_path, 3)
    second = spent()[-1]
    train(recipe(fields), launch(tmp_path, resume=True))
    third = next(line for line in lines(tmp_path, "metrics.jsonl") if line["step"] == 3)
    assert first > second > 0
    assert third["metrics"]["ledger/waste"] == pytest.approx(first + second)
    assert third["attempt"] == 3
    attempts = lines(tmp_path, "attempts.jsonl")
    assert [(line["attempt"], line["step"]) for line in attempts] == [(1, 0), (2, 2), (3, 2)]


def test_half_a_line_that_a_lost_machine_left_of_an_attempt_is_dropped(recipe, tmp_path):
    fields = {"budget.compute": 2}
    train(recipe(fields), launch(tmp_path))
    with (tmp_path / "attempts.jsonl").open("a") as file:
        file.write('{"attempt": 2, "st')
    for _ in range(2):
        train(recipe(fields), launch(tmp_path, resume=True))
    assert [(line["attempt"], line["step"]) for line in lines(tmp_path, "attempts.jsonl")] == [(1, 0), (2, 2), (3, 2)]


@pytest.mark.slow
def test_a_second_interrupt_ends_at_once_and_says_so(command, tmp_path):
    arguments = command(budget__compute=1e6, batch__prompts_per_step=128, batch__generations_per_prompt=16)
    running = subprocess.Popen(
        [sys.executable, "-m", "trainer", *arguments], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not (tmp_path / "run/evaluations.jsonl").exists():
        assert running.poll() is None
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGINT)
    time.sleep(0.2)
    os.kill(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "interrupted at once; go on from the newest checkpoint with --resume" in said
    assert "Traceback" not in said
    assert json.loads((tmp_path / "run/outcome.json").read_text())["outcome"] == "stopped"
