"""Runs under a real local Ray: actors in processes of their own that overlap, and what happens when one dies."""

from __future__ import annotations

import json
import os
import signal
from itertools import pairwise

import pytest

from trainer import checkpoint as checkpoints
from trainer.errors import WorkerLost
from trainer.launch import Launch, train
from trainer.workers.ray_actors import RayWorkers, connect

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module", autouse=True)
def _cluster():
    """One Ray of our own for these tests, whatever runs on this machine; on loopback, gone with them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RAY_ADDRESS", "RAY_AUTH_TOKEN"):
            patch.delenv(name, raising=False)
        patch.setenv("RAY_AUTH_MODE", "disabled")
        leave = connect(cpus=2)
        yield
        leave()


def read(directory, name):
    return [json.loads(line) for line in (directory / name).read_text().splitlines()]


def test_a_run_in_ray_actors_trains_within_the_bound_in_processes_of_their_own(recipe, tmp_path, monkeypatch):
    pids = []
    placed = RayWorkers._wait_until_placed

    def remember(self, wanted):
        pids.extend(placed(self, wanted))
        return pids

    monkeypatch.setattr(RayWorkers, "_wait_until_placed", remember)
    changes = {"budget.compute": 8, "algorithm.max_staleness": 2, "resources.generators": 2}
    outcome = train(recipe(changes), Launch(tmp_path, progress=False))
    assert outcome.step == 8
    assert len({os.getpid(), *pids}) == 4  # two generators, a learner, and us
    metrics = [line for line in read(tmp_path, "metrics.jsonl") if "train/reward" in line["metrics"]]
    assert [line["step"] for line in metrics] == list(range(1, 9))
    assert max(line["metrics"]["staleness/max"] for line in metrics) <= 2
    # Work of different processes: together the roles were busy with one step while others went on.
    assert metrics[-1]["metrics"]["ledger/generator"] > 0
    assert metrics[-1]["metrics"]["ledger/learner"] > 0
    assert metrics[-1]["metrics"]["policy/logprob_diff_mean"] < 0.5
    judged = read(tmp_path, "evaluations.jsonl")
    assert [line["step"] for line in judged] == [0, 2, 4, 6, 8]
    assert all(a["compute"] <= b["compute"] for a, b in pairwise(judged))
    assert checkpoints.newest_valid(tmp_path / "checkpoints").step == 8


def test_evaluations_under_ray_are_those_of_exactly_their_weights(recipe, tmp_path):
    """Both modes start from the same base, so the evaluation of step 0 is the same to the last prompt."""
    train(recipe({"budget.compute": 1}), Launch(tmp_path / "ray", progress=False))
    train(recipe({"budget.compute": 1}), Launch(tmp_path / "here", ray=False, progress=False))
    assert (
        read(tmp_path / "ray", "evaluations.jsonl")[0]["counts"]
        == read(tmp_path / "here", "evaluations.jsonl")[0]["counts"]
    )


def test_a_generator_that_dies_fails_the_run_with_a_named_reason_and_leaves_its_checkpoint(
    recipe, tmp_path, monkeypatch
):
    placed = RayWorkers._wait_until_placed
    stepped = RayWorkers.start_step

    def remember(self, wanted):
        self.generator_pid = placed(self, wanted)[0]
        return [self.generator_pid]

    def kill_after_four_steps(self, groups):
        self.steps = getattr(self, "steps", 0) + 1
        if self.steps == 5:
            os.kill(self.generator_pid, signal.SIGKILL)
        return stepped(self, groups)

    monkeypatch.setattr(RayWorkers, "_wait_until_placed", remember)
    monkeypatch.setattr(RayWorkers, "start_step", kill_after_four_steps)
    with pytest.raises(WorkerLost, match="a generator died"):
        train(recipe({"budget.compute": 1000}), Launch(tmp_path, progress=False))
    ended = json.loads((tmp_path / "outcome.json").read_text())
    assert ended["outcome"] == "failed"
    assert "a generator died" in ended["reason"]
    assert checkpoints.newest_valid(tmp_path / "checkpoints").step >= 3
