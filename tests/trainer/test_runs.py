"""Whole runs in this process, through the doors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from forecurve.recipes import with_changes
from trainer.__main__ import main, run_attached
from trainer.arguments import parser
from trainer.curriculum.fruitless import MAX_NOT_FINITE
from trainer.errors import CheckpointError, ConfigurationError, NotFinite
from trainer.launch import Launch, train
from trainer.learner import Learner
from trainer.records import checkpoint as checkpoints

FULL_SCALERL = {
    "task.pool": 8,
    "algorithm.no_positive_resampling": 0.25,
    "algorithm.min_active_prompts": 2,
    "length_control.kind": "interruption",
    "length_control.after_low": 8,
    "length_control.after_high": 12,
}
JOB = parser().parse_args(["--run", "--no-ray"])
TIMED = ("time/", "throughput/", "ledger/", "memory/")


class FakeRun:
    """The client of a service, as the trainer sees it."""

    held_steps = frozenset()

    def __init__(self, recipe, attempt=1, stop_at=None):
        self.attempt, self.calls, self._recipe, self._stop_at, self._step = attempt, [], recipe, stop_at, 0

    def recipe(self):
        return self._recipe

    @property
    def should_stop(self):
        return self._stop_at is not None and self._step >= self._stop_at

    @property
    def stop_reason(self):
        return "a person asked" if self.should_stop else None

    def log(self, metrics, *, step, compute):
        self._step = step
        self.calls.append(("log", step, dict(metrics)))

    def log_evaluation(self, *, step, compute, counts, samples, details):
        self.calls.append(("evaluation", step, counts))

    def log_checkpoint(self, *, step, compute, path, digest, size_bytes):
        self.calls.append(("checkpoint", step, (path, digest, size_bytes)))

    def heartbeat(self, *, step, compute, message):
        self.calls.append(("heartbeat", step, message))

    def finish(self, outcome, reason=None):
        self.calls.append(("finish", outcome, reason))

    def of(self, kind):
        return [call[1:] for call in self.calls if call[0] == kind]


def launch(directory: Path, **options) -> Launch:
    return Launch(directory, **({"ray": False, "progress": False} | options))


def lines(directory: Path, name: str) -> list[dict]:
    return [json.loads(line) for line in (directory / name).read_text().splitlines()]


def curve(directory: Path) -> list[tuple[int, list[int]]]:
    return [(line["step"], line["counts"]) for line in lines(directory, "evaluations.jsonl")]


def untimed(directory: Path) -> list[tuple[int, dict]]:
    """Metrics by step without what a clock decides."""
    return [
        (line["step"], {name: value for name, value in line["metrics"].items() if not name.startswith(TIMED)})
        for line in lines(directory, "metrics.jsonl")
    ]


def test_a_run_evaluates_at_its_cadence_at_step_zero_and_at_its_end(recipe, tmp_path):
    outcome = train(recipe({"budget.compute": 5}), launch(tmp_path))
    assert (outcome.outcome, outcome.step, outcome.reason) == ("succeeded", 5, "budget of 5 steps reached")
    evaluations = lines(tmp_path, "evaluations.jsonl")
    assert [line["step"] for line in evaluations] == [0, 2, 4, 5]
    assert [line["compute"] for line in evaluations] == [0, 2, 4, 5]
    assert all(len(line["counts"]) == 16 and max(line["counts"]) <= 2 for line in evaluations)
    assert all(line["reward"] == pytest.approx(sum(line["counts"]) / 32) for line in evaluations)
    assert checkpoints.newest_valid(tmp_path / "checkpoints").step == 5
    assert json.loads((tmp_path / "outcome.json").read_text())["outcome"] == "succeeded"


def test_the_same_recipe_gives_the_same_numbers_bit_for_bit_and_another_seed_others(recipe, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(recipe({"seed": seed}), launch(tmp_path / name))
    assert curve(tmp_path / "a") == curve(tmp_path / "b")
    assert untimed(tmp_path / "a") == untimed(tmp_path / "b")
    assert untimed(tmp_path / "a") != untimed(tmp_path / "c")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        pytest.param({"algorithm.queue_batches": 5}, marks=pytest.mark.slow),
        pytest.param({"algorithm.max_staleness": 0, "algorithm.off_policy": "on-policy"}, marks=pytest.mark.slow),
        pytest.param({"algorithm.off_policy": "ppo", "algorithm.max_staleness": 2}, marks=pytest.mark.slow),
        FULL_SCALERL,
    ],
)
def test_a_resumed_run_equals_the_uninterrupted_one_bit_for_bit(recipe, tmp_path, changes):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(recipe({"budget.compute": 8} | changes), launch(whole))

    stopping = FakeRun(None, stop_at=4)
    train(recipe({"budget.compute": 8} | changes), launch(broken), stopping)
    newest = checkpoints.newest_valid(broken / "checkpoints")
    assert newest.step == 4
    (newest.path / "state.json").unlink()  # fall back to the checkpoint of step 3, in the middle of things
    train(recipe({"budget.compute": 8} | changes), launch(broken, resume=True, attempt=2))

    assert [call for call in untimed(broken) if call[1]] == [call for call in untimed(whole) if call[1]]
    # The stop judged steps 4 (due anyway); what was judged after the resumed step was judged again.
    assert curve(broken) == curve(whole)


@pytest.mark.parametrize("queued", [2, 5])
def test_batches_that_are_sampled_when_the_prompts_run_out_are_trained_on(recipe, tmp_path, queued):
    """Each epoch of this pool is one batch, and after the first one no prompt is left for the epochs to come."""
    solved = {"task.pool": 4, "algorithm.no_positive_resampling": 0.01, "algorithm.min_active_prompts": 0}
    changes = solved | {"algorithm.queue_batches": queued, "checkpoint.every_steps": 1, "budget.compute": 40}
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    outcome = train(recipe(changes), launch(whole))
    assert (outcome.outcome, "none is left to train on" in outcome.reason) == ("succeeded", True)
    assert outcome.step >= 2
    *steps, end = lines(whole, "metrics.jsonl")
    assert steps[0]["metrics"]["generation/waiting_groups"] >= 4, "a whole batch waits while the first is learned from"
    assert steps[-1]["metrics"]["generation/waiting_groups"] == 0
    assert end["metrics"]["ledger/waste"] == 0

    train(recipe(changes), launch(broken), FakeRun(None, stop_at=1))
    assert checkpoints.newest_valid(broken / "checkpoints").step == 1
    again = train(recipe(changes), launch(broken, resume=True, attempt=2))
    assert (again.step, again.reason) == (outcome.step, outcome.reason)
    assert [call for call in untimed(broken) if call[1]] == [call for call in untimed(whole) if call[1]]


def test_compute_goes_on_from_the_checkpoint_and_what_is_done_again_is_waste(recipe, tmp_path):
    changes = {"budget.unit": "CPU-seconds", "budget.compute": 1e6, "budget.max_steps": 8}
    train(recipe(changes), launch(tmp_path), FakeRun(None, stop_at=5))
    newest = checkpoints.newest_valid(tmp_path / "checkpoints")
    (newest.path / "manifest.json").unlink()
    spent = {line["step"]: line["compute"] for line in lines(tmp_path, "metrics.jsonl")}
    train(recipe(changes), launch(tmp_path, resume=True, attempt=2))
    after = lines(tmp_path, "metrics.jsonl")
    steps = [line["step"] for line in after]
    assert steps == [1, 2, 3, 4, 5, 6, 7, 8, 8]  # every step once, and the closing ledger
    computes = [line["compute"] for line in after]
    assert computes == sorted(computes)
    fourth = after[3]
    assert fourth["attempt"] == 2
    assert fourth["metrics"]["ledger/waste"] >= spent[5] - spent[3]


def test_stopping_finishes_the_step_judges_the_policy_and_writes_a_checkpoint(recipe, tmp_path):
    run = FakeRun(recipe({"budget.compute": 1000}).to_dict(), stop_at=3)
    code = run_attached(run, tmp_path, JOB)
    assert code == 0
    assert run.of("finish") == [("stopped", "a person asked")]
    assert [step for step, _ in run.of("evaluation")] == [0, 2, 3]
    step, (path, digest, size) = run.of("checkpoint")[-1]
    found = checkpoints.newest_valid(tmp_path / "checkpoints")
    assert (step, path, digest, size) == (3, str(found.path), found.digest, found.size_bytes)


def test_a_second_attempt_of_a_run_resumes_by_itself_without_being_told(recipe, tmp_path):
    body = recipe({"budget.compute": 6}).to_dict()
    run_attached(FakeRun(body, stop_at=3), tmp_path, JOB)
    second = FakeRun(body, attempt=2)
    run_attached(second, tmp_path, JOB)
    assert [step for step, metrics in second.of("log") if "train/reward" in metrics] == [4, 5, 6]
    assert second.of("finish") == [("succeeded", "budget of 6 steps reached")]


def test_a_job_whose_recipe_cannot_be_used_says_so_to_the_service(recipe, tmp_path):
    body = recipe().to_dict()
    body["algorithm"]["loss"] = "ppo"
    run = FakeRun(body)
    with pytest.raises(ValueError, match=r"algorithm\.loss"):
        run_attached(run, tmp_path, JOB)
    [(outcome, reason)] = run.of("finish")
    assert outcome == "failed"
    assert "algorithm.loss" in reason


def test_steps_that_are_not_finite_are_skipped_and_end_the_run_after_a_few_in_a_row(recipe, tmp_path, monkeypatch):
    gradients = Learner.gradients

    def broken(self, batch, plan):
        sums = gradients(self, batch, plan)
        if self.version not in (1, 2, 4):
            sums[0] = float("nan")  # the loss
        return sums

    monkeypatch.setattr(Learner, "gradients", broken)
    run = FakeRun(None)
    with pytest.raises(NotFinite, match=f"{MAX_NOT_FINITE} steps in a row, the last being step 9"):
        train(recipe({"budget.compute": 1000, "algorithm.zero_variance_filter": "off"}), launch(tmp_path), run)
    [(outcome, reason)] = run.of("finish")
    assert outcome == "failed"
    assert "not finite" in reason
    logged = {line["step"]: line["metrics"] for line in lines(tmp_path, "metrics.jsonl")}
    assert [logged[step]["train/skipped_steps"] for step in (2, 3, 4, 5)] == [0, 1, 1, 2]
    assert logged[3]["train/loss"] == "NaN"
    assert checkpoints.newest_valid(tmp_path / "checkpoints").step == 6


def test_a_disk_that_refuses_on_the_way_costs_a_checkpoint_and_not_the_run(recipe, tmp_path, capsys):
    class Freeing(FakeRun):
        """Has the disk freed after step 3."""

        def heartbeat(self, *, step, compute, message):
            super().heartbeat(step=step, compute=compute, message=message)
            if "could not write" in message:
                (tmp_path / "checkpoints").unlink()

    (tmp_path / "checkpoints").write_text("in the way")
    run = Freeing(None)
    outcome = train(recipe({"budget.compute": 4}), launch(tmp_path, progress=True), run)
    assert outcome.outcome == "succeeded"
    assert [step for step, _ in run.of("checkpoint")] == [4]
    assert "could not write the checkpoint of step 3" in capsys.readouterr().err


def test_a_run_whose_last_weights_no_disk_would_take_has_failed(recipe, tmp_path):
    (tmp_path / "checkpoints").write_text("in the way")
    run = FakeRun(None)
    with pytest.raises(CheckpointError, match=r"the checkpoint of step 4 .* the last weights are not kept"):
        train(recipe({"budget.compute": 4}), launch(tmp_path), run)
    assert [outcome for outcome, _ in run.of("finish")] == ["failed"]
    assert [step for step, _ in run.of("evaluation")] == [0, 2, 4]
    assert json.loads((tmp_path / "outcome.json").read_text())["outcome"] == "failed"


def test_resuming_with_another_recipe_is_refused(recipe, tmp_path):
    train(recipe({"budget.compute": 3}), launch(tmp_path))
    with pytest.raises(ConfigurationError, match=r"optimizer.learning_rate 0.0003 -> 0.001.*--fork"):
        train(recipe({"budget.compute": 6, "optimizer.learning_rate": 1e-3}), launch(tmp_path, resume=True))
    assert checkpoints.newest_valid(tmp_path / "checkpoints").step == 3


def test_a_directory_that_holds_a_run_is_not_overwritten(recipe, tmp_path):
    train(recipe({"budget.compute": 3}), launch(tmp_path))
    with pytest.raises(ConfigurationError, match="already holds a run, at step 3; go on with it with --resume"):
        train(recipe({"budget.compute": 3}), launch(tmp_path))


def test_resuming_a_run_that_is_done_ends_at_once(recipe, tmp_path):
    train(recipe({"budget.compute": 3}), launch(tmp_path))
    before = curve(tmp_path)
    outcome = train(recipe({"budget.compute": 3}), launch(tmp_path, resume=True, attempt=2))
    assert (outcome.outcome, outcome.step) == ("succeeded", 3)
    assert curve(tmp_path) == before


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"budget.unit": "GPU-hours"}, {"ray": True}, "resources.gpus is 0"),
        ({"resources.gpus": 1}, {}, "--no-ray runs on the CPU"),
        ({"task.max_moves": 1, "task.min_moves": 1, "evaluation.prompts": 4096}, {}, "held-out prompts"),
    ],
)
def test_what_this_machine_cannot_run_is_refused_before_anything_is_written(
    recipe, tmp_path, changes, options, message
):
    with pytest.raises(ConfigurationError, match=message):
        train(recipe(changes), launch(tmp_path / "run", **options))
    assert not (tmp_path / "run").exists()


def test_the_command_runs_a_recipe_from_a_file_with_a_field_replaced(recipe, tmp_path, capsys):
    file = tmp_path / "recipe.yaml"
    file.write_text(yaml.safe_dump(recipe().to_dict()))
    arguments = ["--recipe", str(file), "--out", str(tmp_path / "run"), "--no-ray", "--set", "budget.compute=2"]
    assert main(arguments) == 0
    assert [step for step, _ in curve(tmp_path / "run")] == [0, 2]
    assert "pass rate" in capsys.readouterr().err


def test_a_bare_off_in_yaml_is_the_word(capsys):
    assert main(["--recipe", "preset:scalerl", "--dry-run", "--set", "algorithm.zero_variance_filter=off"]) == 0
    assert json.loads(capsys.readouterr().out)["recipe"]["algorithm"]["zero_variance_filter"] == "off"


def test_a_dry_run_prints_the_resolved_recipe_and_what_it_amounts_to(capsys):
    assert main(["--recipe", "preset:scalerl", "--dry-run"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["parameters"] == 107_456
    assert shown["completions_per_step"] == 512
    assert shown["recipe"]["algorithm"]["loss"] == "cispo"
    assert 0.5 < shown["chain_ceiling"] < 0.8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--recipe", "nowhere.yaml"], "nowhere.yaml"),
        (["--recipe", "preset:scalrl"], "did you mean `scalerl`"),
        (["--recipe", "preset:scalerl", "--set", "algorithm.lss=dapo"], "algorithm.lss"),
        (["--recipe", "preset:scalerl", "--set", "algorithm.loss"], "field=value"),
        (["--recipe", "preset:scalerl", "--set", "budget.unit=GPU-hours"], "resources.gpus"),
    ],
)
def test_a_recipe_that_cannot_be_used_exits_2_and_names_the_fault(tmp_path, capsys, arguments, message):
    assert main([*arguments, "--out", str(tmp_path / "run"), "--no-ray"]) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_is_no_recipe_exits_2(tmp_path, capsys):
    for text in ("a: [1", "- 1", "algorithm:\n  los: dapo\n"):
        file = tmp_path / "recipe.yaml"
        file.write_text(text)
        assert main(["--recipe", str(file), "--out", str(tmp_path / "run"), "--no-ray"]) == 2
        assert "error:" in capsys.readouterr().err


def test_sigterm_finishes_the_step_and_leaves_a_checkpoint_and_exit_code_0(recipe, tmp_path):
    file, out = tmp_path / "recipe.yaml", tmp_path / "run"
    file.write_text(yaml.safe_dump(recipe({"budget.compute": 100_000}).to_dict()))
    command = [sys.executable, "-m", "trainer", "--recipe", str(file), "--out", str(out), "--no-ray"]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": "."}, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not (out / "metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    last = lines(out, "metrics.jsonl")[-1]["step"]
    assert checkpoints.newest_valid(out / "checkpoints").step == last == curve(out)[-1][0]
    assert json.loads((out / "outcome.json").read_text()) == {
        "outcome": "stopped",
        "reason": "SIGTERM received",
        "attempt": 1,
    }


def test_a_short_run_improves_the_reward(recipe, tmp_path):
    """Forty small steps, deterministic on one machine; the margin is for other CPUs."""
    learning = {
        "batch.prompts_per_step": 8,
        "batch.generations_per_prompt": 8,
        "generation.max_tokens": 24,
        "optimizer.learning_rate": 1e-3,
        "optimizer.warmup_steps": 5,
        "evaluation.prompts": 128,
        "evaluation.every_steps": 40,
        "budget.compute": 40,
    }
    train(recipe(learning), launch(tmp_path))
    first, last = lines(tmp_path, "evaluations.jsonl")
    assert first["reward"] < 0.3
    assert last["reward"] > first["reward"] + 0.1


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"model.width": 32, "model.layers": 1}, {"task.echo_start": False}])
def test_another_base_is_warm_started_on_demand_and_cached(recipe, tmp_path, monkeypatch, change):
    from trainer.base_weights import warm_start

    monkeypatch.setenv("FORECURVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(warm_start, "STEPS", 3)
    monkeypatch.setattr(warm_start, "SEEDS", (1,))
    train(recipe({"budget.compute": 2} | change), launch(tmp_path / "a"))
    [made] = (tmp_path / "cache").glob("*.safetensors")
    stamp = made.stat().st_mtime_ns
    train(with_changes(recipe({"budget.compute": 2} | change), {"seed": 1}), launch(tmp_path / "b"))
    assert made.stat().st_mtime_ns == stamp
