"""What a run says about its steps: every name is explained, and figures are what they say they are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trainer.curriculum import fruitless
from trainer.curriculum.buffer import Batch
from trainer.engines.torch_engine import TorchEngine
from trainer.errors import NothingToLearn, TrainerError
from trainer.generation.generator import Generator
from trainer.launch import Launch, train
from trainer.measuring.ledger import Ledger
from trainer.measuring.metric_names import FAMILIES, OVERVIEW, page
from trainer.measuring.metrics import batch_metrics, memory_metrics
from trainer.measuring.telemetry import Telemetry
from trainer.records.json_lines import JsonLines
from trainer.tasks import TorusTask, build_task
from trainer.types import Cost, Memory, StepResult, Wave, WaveResult, WeightVersion

from ..test_runs import FakeRun, lines, untimed

ELSEWHERE = {"ledger/idle", "memory/learner_peak_share", "verifier/judged", "verifier/timeouts", "verifier/crashes"}
"""Said by runs that reserve GPUs, or whose task has verifiers in processes of their own."""


def launch(directory: Path) -> Launch:
    return Launch(directory, ray=False, progress=False)


def test_every_metric_of_a_run_is_explained_and_every_explained_one_is_said(recipe, tmp_path):
    fields = {
        "task.pool": 32,
        "algorithm.no_positive_resampling": 0.9,
        "algorithm.min_active_prompts": 4,
        "algorithm.zero_variance_filter": "refill",
        "algorithm.kl_coefficient": 0.01,
        "batch.generations_per_prompt": 8,
        "budget.compute": 4,
    }
    train(recipe(fields), launch(tmp_path))
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    said = {name for line in lines for name in json.loads(line)["metrics"]}
    explained = set(OVERVIEW | FAMILIES)
    assert said - explained == set()
    assert explained - said == ELSEWHERE
    assert len(OVERVIEW) <= 13


def test_the_reference_page_is_current():
    assert Path("docs/reference/metrics.md").read_text() == page()


def test_a_batch_says_what_was_sampled_and_beside_it_what_is_kept(recipe, group):
    small = recipe()
    kept = [
        group(small, 0, [1, 0, 1, 0], [2, 4, 6, 8], version=3),
        group(small, 2, [1, 0, 0, 0], [2, 2, 2, 2], version=5),
    ]
    dropped = [group(small, 1, [1, 1, 1, 1], [10, 10, 10, 10], version=4)]
    found = batch_metrics(Batch(6, kept, dropped), kept)
    assert found["train/pass_rate_all"] == pytest.approx(7 / 12)
    assert found["train/pass_rate_kept"] == pytest.approx(3 / 8)
    assert found["filter/all_right_share"] == pytest.approx(1 / 3)
    assert (found["filter/all_wrong_share"], found["filter/refilled_groups"]) == (0, 1)
    assert found["staleness/mean"] == pytest.approx((20 * 3 + 8 * 1) / 28)
    assert found["staleness/in_queue_max"] == 3
    assert found["staleness/in_flight_max"] == 0
    assert found["generation/response_length_max"] == 10
    assert found["generation/response_length_right"] == pytest.approx((2 + 6 + 2 + 40) / 7)


def test_staleness_is_split_into_flight_and_queue(recipe, group):
    one = group(recipe(), 0, [1, 0], [4, 4], version=0)
    versions = np.array([[2, 2, 3, 4], [2, 3, 4, 4]], dtype=np.int32)
    one = replace(one, responses=replace(one.responses, versions=versions))
    found = batch_metrics(Batch(7, [one], []), [one])
    assert found["staleness/in_queue_mean"] == 3
    assert found["staleness/in_flight_mean"] == pytest.approx(8 / 8)
    assert found["staleness/mean"] == found["staleness/in_queue_mean"] + found["staleness/in_flight_mean"]
    assert found["staleness/max"] == 5


def test_waiting_and_swaps_are_shares_of_the_time_they_were_taken_from(recipe, group):
    now = [100.0]
    telemetry = Telemetry(Ledger("steps"), "shrink", clock=lambda: now[0])
    groups = [group(recipe(), i, [1, 0, 0, 1]) for i in range(2)]
    telemetry.wave(WaveResult(tuple(groups), Cost(3.0, 4.0), paused_seconds=0.5, waited_seconds=1.0))
    now[0] += 6.0
    telemetry.batch_taken()
    now[0] += 2.0
    result = StepResult(1, {}, WeightVersion(1, None), True, False, Cost(2.0, 2.0))
    said = telemetry.step(result, Batch(0, groups, []))
    assert said["time/learner_wait_share"] == pytest.approx(6 / 8)
    assert said["time/generator_wait_share"] == pytest.approx(1 / 5)
    assert said["time/swap_pause_share"] == pytest.approx(0.5 / 5)


def test_memory_is_told_in_gib_and_of_a_gpu_as_a_share(recipe, group):
    assert memory_metrics(None) == {}
    assert memory_metrics(Memory(3 * 2**29)) == {"memory/learner_peak": 1.5}
    found = memory_metrics(Memory(20 * 2**30, 80 * 2**30))
    assert found == {"memory/learner_peak": 20.0, "memory/learner_peak_share": 0.25}
    telemetry = Telemetry(Ledger("steps"), "shrink", clock=lambda: 0.0)
    telemetry.batch_taken()
    result = StepResult(1, {}, WeightVersion(1, None), True, False, Cost(2.0, 2.0), Memory(2**30))
    said = telemetry.step(result, Batch(0, [group(recipe(), 0, [1, 0, 0, 1])], []))
    assert said["memory/learner_peak"] == 1.0


def test_speed_and_staleness_are_of_what_is_trained_on(recipe, group):
    now = [0.0]
    telemetry = Telemetry(Ledger("steps"), "shrink", clock=lambda: now[0])
    small = recipe()
    teaching = group(small, 0, [1, 0, 0, 1], [5, 5, 5, 5], version=3)
    groups = [teaching, group(small, 1, [1, 1, 1, 1], [9, 9, 9, 9], version=0)]
    refilled = [group(small, 2, [0, 0, 0, 0], [9, 9, 9, 9], version=0)]
    telemetry.batch_taken()
    telemetry.batch_taken()
    now[0] += 2.0
    result = StepResult(5, {}, WeightVersion(5, None), True, False, Cost(2.0, 2.0))
    said = telemetry.step(result, Batch(4, groups, refilled))
    assert said["throughput/completions_per_second"] == 4 / 2
    assert said["throughput/tokens_per_second"] == 20 / 2
    assert said["throughput/learning_tokens_per_cpu_second"] == 20 / 2
    assert said["staleness/max"] == 1
    empty = telemetry.step(result, Batch(5, groups[1:], refilled))
    assert "staleness/max" not in empty
    assert empty["throughput/completions_per_second"] == 0


@pytest.mark.parametrize("filter_", ["shrink", "refill", "off"])
def test_a_run_in_which_no_answer_is_right_ends_by_name(recipe, tmp_path, monkeypatch, filter_):
    monkeypatch.setattr(fruitless, "BARREN_BATCHES", 3)
    monkeypatch.setattr(TorusTask, "passed", lambda self, prompt, tokens, lengths: np.zeros(len(tokens), dtype=bool))
    with pytest.raises(NothingToLearn, match="not one answer was right in the last 12 prompts"):
        train(recipe({"budget.compute": 100, "algorithm.zero_variance_filter": filter_}), launch(tmp_path))


def test_a_run_at_its_budget_has_succeeded_whatever_its_last_waves_bring(recipe, tmp_path, monkeypatch):
    """Two batches are learned from and two more are under way when it ends."""
    monkeypatch.setattr(fruitless, "BARREN_BATCHES", 4)
    monkeypatch.setattr(TorusTask, "passed", lambda self, prompt, tokens, lengths: np.zeros(len(tokens), dtype=bool))
    outcome = train(recipe({"budget.compute": 2}), launch(tmp_path))
    assert (outcome.outcome, outcome.reason) == ("succeeded", "budget of 2 steps reached")


def test_a_run_that_solves_everything_is_done(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(fruitless, "BARREN_BATCHES", 3)
    monkeypatch.setattr(TorusTask, "passed", lambda self, prompt, tokens, lengths: np.ones(len(tokens), dtype=bool))
    outcome = train(recipe({"budget.compute": 100}), launch(tmp_path))
    assert outcome.outcome == "succeeded"
    assert "100% of them were right" in outcome.reason


class Asked(FakeRun):
    """A service that wants the run to stop as soon as it has judged something."""

    @property
    def should_stop(self):
        return bool(self.of("evaluation"))

    stop_reason = "a person asked"


def test_a_request_to_stop_is_heard_while_refill_finds_no_batch(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(TorusTask, "passed", lambda self, prompt, tokens, lengths: np.ones(len(tokens), dtype=bool))
    fields = {"budget.compute": 100, "algorithm.zero_variance_filter": "refill"}
    outcome = train(recipe(fields), launch(tmp_path), Asked(None))
    assert (outcome.outcome, outcome.reason, outcome.step) == ("stopped", "a person asked", 0)


def test_the_budget_ends_a_run_while_refill_finds_no_batch(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(TorusTask, "passed", lambda self, prompt, tokens, lengths: np.ones(len(tokens), dtype=bool))
    fields = {"budget.unit": "CPU-seconds", "budget.compute": 1e-4, "algorithm.zero_variance_filter": "refill"}
    outcome = train(recipe(fields), launch(tmp_path))
    assert outcome.reason.startswith("budget of 0.0001 CPU-seconds reached on the way to a batch")
    assert outcome.step == 0


def test_rewards_that_the_filter_takes_for_equal_end_the_run_too(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(fruitless, "BARREN_BATCHES", 3)
    fields = {"budget.compute": 100, "rewards.correct": 1e-9, "rewards.wrong": 0.0}
    outcome = train(recipe(fields), launch(tmp_path))
    assert outcome.reason.startswith("nothing left to learn: in the last 12 prompts")


def test_a_pool_that_is_solved_ends_the_run_by_name(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(TorusTask, "passed", lambda self, prompt, tokens, lengths: np.ones(len(tokens), dtype=bool))
    fields = {"task.pool": 8, "algorithm.no_positive_resampling": 0.9, "algorithm.min_active_prompts": 0}
    outcome = train(recipe(fields | {"budget.compute": 100}), launch(tmp_path))
    assert outcome.outcome == "succeeded"
    assert "none is left to train on" in outcome.reason
    assert outcome.step >= 2


def test_a_round_that_prompts_cannot_fill_is_trained_on_as_far_as_its_batches_are_whole(recipe, tmp_path, monkeypatch):
    """Twelve prompts are three batches an epoch: the second epoch ends with the sixth batch, in a round of four."""

    def passed(self, prompt, tokens, lengths):
        return np.arange(len(tokens)) > 0

    monkeypatch.setattr(TorusTask, "passed", passed)
    fields = {"task.pool": 12, "algorithm.no_positive_resampling": 0.7, "algorithm.min_active_prompts": 0}
    rounds = {"algorithm.off_policy": "ppo", "algorithm.max_staleness": 4, "budget.compute": 40}
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    wanted = recipe(fields | rounds | {"checkpoint.every_steps": 1})
    outcome = train(wanted, launch(whole))
    assert (outcome.outcome, outcome.step) == ("succeeded", 6)
    assert "none is left to train on" in outcome.reason
    *steps, end = lines(whole, "metrics.jsonl")
    assert [line["metrics"]["staleness/max"] for line in steps] == [0, 1, 2, 3, 0, 1]
    assert end["metrics"]["ledger/waste"] == 0

    train(wanted, launch(broken), FakeRun(None, stop_at=5))
    again = train(wanted, replace(launch(broken), resume=True, attempt=2))
    assert (again.step, again.reason) == (outcome.step, outcome.reason)
    assert untimed(broken)[:6] == untimed(whole)[:6]


def test_a_pool_that_waiting_batches_show_not_to_be_solved_goes_on(recipe, tmp_path, monkeypatch):
    """All of the first epoch is solved and nothing of the second, which waits while the third is asked for."""
    solved_once: set[int] = set()

    def passed(self, prompt, tokens, lengths):
        first = prompt.index >= 0 and prompt.index not in solved_once
        solved_once.add(prompt.index)
        return np.full(len(tokens), first)

    monkeypatch.setattr(TorusTask, "passed", passed)
    fields = {"task.pool": 4, "algorithm.no_positive_resampling": 0.9, "algorithm.min_active_prompts": 0}
    outcome = train(recipe(fields | {"budget.compute": 5}), launch(tmp_path))
    assert (outcome.reason, outcome.step) == ("budget of 5 steps reached", 5)


def test_lines_that_a_full_disk_refuses_come_with_the_next_that_it_takes(tmp_path, monkeypatch):
    file = JsonLines(tmp_path / "lines.jsonl")
    file.append({"n": 1})
    (tmp_path / "lines.jsonl").rename(tmp_path / "kept")
    (tmp_path / "lines.jsonl").mkdir()  # refuses to be written to
    monkeypatch.setattr("trainer.records.json_lines.os.truncate", lambda path, size: None)
    file.append({"n": 2})
    (tmp_path / "lines.jsonl").rmdir()
    (tmp_path / "kept").rename(tmp_path / "lines.jsonl")
    file.append({"n": 3})
    assert [json.loads(line)["n"] for line in (tmp_path / "lines.jsonl").read_text().splitlines()] == [1, 2, 3]
    assert file.size == (tmp_path / "lines.jsonl").stat().st_size


def test_a_disk_that_refuses_for_too_long_ends_the_run_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr("trainer.records.json_lines.MOST_WAITING", 2)
    file = JsonLines(tmp_path / "nowhere" / "lines.jsonl")
    file.append({"n": 1})
    file.append({"n": 2})
    with pytest.raises(TrainerError, match="free the disk and resume"):
        file.append({"n": 3})


@pytest.mark.parametrize("says", [None, 1000.0])
def test_a_swap_stood_still_for_as_long_as_its_engine_says_or_else_for_as_long_as_it_took(
    says, recipe, model, monkeypatch
):
    given = recipe()
    weights = {name: value.detach().numpy() for name, value in model(given).named_tensors().items()}
    load = TorchEngine.load_weights
    monkeypatch.setattr(TorchEngine, "load_weights", lambda *arguments: load(*arguments) or says)
    generator = Generator(given, build_task(given), lambda: model(given))
    result = generator.generate(Wave(((0, 0),), 1), lambda held: None if held else (1, weights))
    assert result.paused_seconds == says if says else 0 < result.paused_seconds < 1000
