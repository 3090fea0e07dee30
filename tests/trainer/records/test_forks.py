"""A fork as a job of the service: it begins at its parent's checkpoint, goes on from its own, and keeps others'."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from trainer.__main__ import main, run_attached
from trainer.arguments import parser
from trainer.errors import ConfigurationError
from trainer.launch import Launch, train
from trainer.records import checkpoint as checkpoints
from trainer.records.checkpoint import Checkpoint

from ..test_runs import FakeRun, lines


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("forks")


@pytest.fixture
def parent(shared, recipe) -> Checkpoint:
    """Step 3 of a run of three steps; made once."""
    if not (shared / "parent").exists():
        train(recipe({"budget.compute": 3}), Launch(shared / "parent", ray=False, progress=False))
    found = checkpoints.newest_valid(shared / "parent" / "checkpoints")
    assert found is not None
    return found


def job(begin: Checkpoint, **other: str):
    """The arguments that the worker gives the job of a fork."""
    given = {"fork": str(begin.path), "digest": begin.digest} | other
    return parser().parse_args(["--run", "--no-ray", *(f"--{name}={value}" for name, value in given.items())])


def judged(run: FakeRun) -> list[int]:
    return [step for step, _ in run.of("evaluation")]


CHANGED = {"budget.compute": 6, "optimizer.learning_rate": 1e-3}


def test_the_job_of_a_fork_goes_on_from_the_parents_step_and_compute(recipe, parent, tmp_path):
    run = FakeRun(recipe(CHANGED).to_dict())
    assert run_attached(run, tmp_path / "child", job(parent)) == 0
    assert judged(run) == [3, 4, 6]
    assert [line["compute"] for line in lines(tmp_path / "child", "evaluations.jsonl")] == [3, 4, 6]
    assert run.of("evaluation")[0][1] == lines(parent.path.parents[1], "evaluations.jsonl")[-1]["counts"]
    origin = json.loads((tmp_path / "child" / "origin.json").read_text())
    assert (origin["checkpoint_digest"], origin["step"]) == (parent.digest, 3)
    assert set(origin["changes"]) == set(CHANGED)


def test_a_later_attempt_of_a_fork_goes_on_from_its_own_checkpoint(recipe, parent, tmp_path):
    body = recipe(CHANGED).to_dict()
    run_attached(FakeRun(body, stop_at=5), tmp_path / "child", job(parent))
    second = FakeRun(body, attempt=2)
    run_attached(second, tmp_path / "child", job(parent))
    assert [step for step, metrics in second.of("log") if "train/reward" in metrics] == [6]
    assert [line["step"] for line in lines(tmp_path / "child", "evaluations.jsonl")] == [3, 4, 6]


def test_a_later_attempt_begins_at_the_parent_again_as_long_as_there_is_no_checkpoint(recipe, parent, tmp_path):
    body = recipe(CHANGED).to_dict()
    run_attached(FakeRun(body, stop_at=4), tmp_path / "child", job(parent))
    shutil.rmtree(tmp_path / "child" / "checkpoints")  # as if it had died before its first
    second = FakeRun(body, attempt=2)
    run_attached(second, tmp_path / "child", job(parent))
    assert judged(second) == [3, 4, 6]
    assert [line["step"] for line in lines(tmp_path / "child", "evaluations.jsonl")] == [3, 4, 6]


def gone(path: Path) -> None:
    shutil.rmtree(path)


def damaged(path: Path) -> None:
    (path / "learner.safetensors").write_bytes(b"")


@pytest.mark.parametrize("befall", [gone, damaged])
def test_a_fork_whose_checkpoint_is_lost_fails_with_its_name_and_trains_nothing(recipe, parent, tmp_path, befall):
    copy = shutil.copytree(parent.path, tmp_path / "parent" / "checkpoints" / parent.path.name)
    befall(copy)
    run = FakeRun(recipe(CHANGED).to_dict())
    with pytest.raises(ConfigurationError):
        run_attached(run, tmp_path / "child", job(parent, fork=str(copy)))
    [(outcome, reason)] = run.of("finish")
    assert outcome == "failed"
    assert f"{copy}, the checkpoint to begin at, is gone or damaged" in reason
    assert not (tmp_path / "child").exists()


def test_a_fork_does_not_begin_at_another_checkpoint_of_that_name(recipe, parent, tmp_path):
    run = FakeRun(recipe(CHANGED).to_dict())
    with pytest.raises(ConfigurationError, match="is another checkpoint by now"):
        run_attached(run, tmp_path / "child", job(parent, digest="0" * 64))
    assert run.of("log") == []


def test_a_fork_with_another_model_is_refused_before_a_base_for_it_is_trained(recipe, parent, tmp_path):
    run = FakeRun(recipe(CHANGED | {"model.width": 32}).to_dict())
    with pytest.raises(ConfigurationError, match=r"are of another model: model.width 64 -> 32"):
        run_attached(run, tmp_path / "child", job(parent))
    assert [outcome for outcome, _ in run.of("finish")] == ["failed"]


def test_a_digest_without_a_checkpoint_to_begin_at_is_refused():
    with pytest.raises(SystemExit) as caught:
        main(["--run", "--digest", "0" * 64])
    assert caught.value.code == 2


def test_a_checkpoint_that_a_fork_waits_for_outlives_retention_until_it_is_let_go(recipe, tmp_path):
    class Held(FakeRun):
        """The service tells of a fork from step 2 while the run is at steps 3 to 5."""

        @property
        def held_steps(self):
            return frozenset({2}) if 3 <= self._step <= 5 else frozenset()

    fields = {"checkpoint.every_steps": 1, "checkpoint.keep_last": 1, "budget.compute": 5}
    directory = Launch(tmp_path / "a", ray=False, progress=False)
    found = []

    class Watching(Held):
        def log_checkpoint(self, *, step, **values):
            found.append(sorted(int(p.name[-6:]) for p in (tmp_path / "a" / "checkpoints").iterdir()))

    train(recipe(fields), directory, Watching(None))
    assert found == [[1], [2], [2, 3], [2, 4], [2, 5]]
    train(recipe(fields | {"budget.compute": 6}), Launch(tmp_path / "b", ray=False, progress=False), Held(None))
    assert sorted(p.name for p in (tmp_path / "b" / "checkpoints").iterdir()) == ["step_000006"]
