"""A worker, its device or its machine fails: the attempt is lost, and another may go better. A faulty recipe fails."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
from ray.exceptions import NodeDiedError, RayTaskError

from forecurve.client import ApiError
from trainer.__main__ import FAILED, LOST, main, run_attached
from trainer.errors import HopelessWork, NotFinite, OutOfMemory, TrainerError, WorkerLost
from trainer.faults import may_go_better
from trainer.learner import Learner, join, leave

from .test_runs import JOB, FakeRun


def fail_at_step(monkeypatch, number, error):
    """The learner's step `number`, counted over all attempts from here on, raises `error`."""
    real, steps = Learner.step, []

    def step(self, groups):
        steps.append(None)
        if len(steps) == number:
            raise error
        return real(self, groups)

    monkeypatch.setattr(Learner, "step", step)


def end_of(run, directory):
    """Runs it to its loss or failure; how it reported that."""
    with pytest.raises(Exception):  # noqa: B017 - which one is what the report says
        run_attached(run, directory, JOB)
    ((outcome, reason),) = run.of("finish")
    return outcome, reason


def in_an_actor(error):
    return RayTaskError("step", "Traceback", error)


@pytest.mark.parametrize(
    "error",
    [
        WorkerLost("the learner died during a step"),
        torch.AcceleratorError("CUDA error: uncorrectable ECC error encountered"),
        in_an_actor(torch.AcceleratorError("CUDA error: unspecified launch failure")),
        torch.distributed.DistBackendError("NCCL error: remote process exited or there was a network error"),
        NodeDiedError("the node died"),
        ConnectionError("Ray does not answer"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_lies_with_a_worker_or_its_machine_loses_the_attempt(recipe, tmp_path, monkeypatch, error):
    fail_at_step(monkeypatch, 2, error)
    run = FakeRun(recipe().to_dict())
    outcome, reason = end_of(run, tmp_path)
    assert outcome == "lost"
    assert str(error).splitlines()[0] in reason
    assert reason.endswith("Lost after step 1")
    assert json.loads((tmp_path / "outcome.json").read_text())["outcome"] == "lost"


A_RANK_THAT_DIES = """
import os, sys
import torch.distributed as dist
dist.init_process_group("gloo", init_method=sys.argv[1], rank=0, world_size=2)
os._exit(1)
"""


def test_a_rank_that_dies_loses_the_attempt_also_where_another_rank_hears_of_it_before_ray_does(tmp_path):
    meeting = f"file://{tmp_path / 'meeting'}"
    other = subprocess.Popen([sys.executable, "-c", A_RANK_THAT_DIES, meeting])
    ranks = join(meeting, 1, 2)
    try:
        with pytest.raises(RuntimeError) as caught:
            ranks.sum(torch.ones(1))
    finally:
        leave()
        other.wait(60)
    assert may_go_better(caught.value)
    assert may_go_better(in_an_actor(caught.value))


@pytest.mark.parametrize(
    "error",
    [
        NotFinite("loss was not finite"),
        OutOfMemory("lower batch.micro_tokens"),
        HopelessWork("4 generators were lost at the wave of prompts 0 to 3"),
        torch.AcceleratorError("CUDA error: device-side assert triggered"),
        in_an_actor(ValueError("shapes do not fit")),
        ValueError("shapes do not fit"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_another_attempt_would_meet_again_fails_the_run(recipe, tmp_path, monkeypatch, error):
    fail_at_step(monkeypatch, 2, error)
    assert end_of(FakeRun(recipe().to_dict()), tmp_path)[0] == "failed"


def test_attempts_that_are_lost_at_the_same_step_say_so_with_what_to_look_at(recipe, tmp_path, monkeypatch):
    reasons = []
    for attempt in (1, 2, 3):
        with monkeypatch.context() as patch:
            fail_at_step(patch, 5 if attempt == 1 else 2, WorkerLost("the learner died."))  # a checkpoint is at step 3
            reasons.append(end_of(FakeRun(recipe().to_dict(), attempt=attempt), tmp_path)[1])
    assert reasons[0] == "the learner died. Lost after step 4"
    assert "Lost after step 4, as was the attempt before: look at what step 5 asks for" in reasons[1]
    assert "as were the 2 attempts before" in reasons[2]
    assert "batch.micro_tokens" in reasons[2]


@pytest.mark.parametrize(("status", "outcome"), [(None, "lost"), (503, "lost"), (404, "failed")])
def test_a_recipe_that_the_service_does_not_hand_out_just_now_is_asked_for_again(tmp_path, status, outcome):
    class Away(FakeRun):
        def recipe(self):
            raise ApiError("no answer", status=status)

    run = Away(None)
    with pytest.raises(TrainerError, match="no answer"):
        run_attached(run, tmp_path, JOB)
    assert run.of("finish")[0][0] == outcome


@pytest.mark.parametrize(("error", "code"), [(WorkerLost("gone"), LOST), (NotFinite("nan"), FAILED)])
def test_the_exit_code_says_whether_to_try_again(tmp_path, monkeypatch, capsys, error, code):
    fail_at_step(monkeypatch, 1, error)
    changes = ["budget.unit=steps", "budget.compute=1", "batch.prompts_per_step=2", "evaluation.prompts=16"]
    flags = [flag for change in changes for flag in ("--set", change)]
    assert main(["--recipe", "preset:scalerl", "--out", str(tmp_path), "--no-ray", *flags]) == code
    assert capsys.readouterr().err.splitlines()[-1].startswith("lost: gone" if code == LOST else "failed: nan")
