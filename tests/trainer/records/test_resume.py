"""Resuming equals never having stopped, bit for bit; and dying at any write loses nothing but time."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.launch import train
from trainer.records import checkpoint as checkpoints
from trainer.workers import local

from ..test_runs import launch

TIMED = ("time/", "throughput/", "ledger/", "memory/")
STEPS = 6


def written(directory: Path) -> dict[str, list]:
    """All that a run says, without what a clock or the number of attempts decides."""
    kept = {}
    for name in ("metrics.jsonl", "evaluations.jsonl", "rollouts.jsonl"):
        path = directory / name
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        for line in lines:
            line.pop("attempt"), line.pop("time")
            line["metrics"] = {k: v for k, v in line.get("metrics", {}).items() if not k.startswith(TIMED)}
            # Every attempt checks itself at its first evaluation.
            line["details"] = {k: v for k, v in line.get("details", {}).items() if not k.startswith("self_check")}
        kept[name] = lines
    return kept


def final_bytes(directory: Path) -> dict[str, bytes | object]:
    """Weights and moments as they lie on disk, and where prompts and counters stand."""
    newest = checkpoints.newest_valid(directory / "checkpoints")
    state = json.loads(newest.read("state.json"))
    return {"learner": newest.read("learner.safetensors")} | {
        name: state[name] for name in ("step", "order", "counters", "batches_taken", "next_ordinal", "waves", "dropped")
    }


def cut_off_at(step: int, whole: Path, directory: Path) -> None:
    """`whole` as if it had been killed just before its next checkpoint after `step`, with lines beyond it written."""
    shutil.copytree(whole, directory)
    for path in (directory / "checkpoints").iterdir():
        if int(path.name.removeprefix("step_")) > step:
            shutil.rmtree(path)
    with (directory / "metrics.jsonl").open("a") as file:
        file.write('{"step": 99, "met')  # died in the middle of a line


EAGER = ("step", "wave", "evaluation")
"""Order of work in which steps overtake waves and evaluations, so that checkpoints find both under way."""

CASES = {
    "waves and evaluations under way": (EAGER, {"algorithm.queue_batches": 4}, range(1, STEPS)),
    "on-policy": (None, {"algorithm.off_policy": "on-policy", "algorithm.max_staleness": 0}, (3,)),
    "the middle of a round of ppo": (None, {"algorithm.off_policy": "ppo", "algorithm.max_staleness": 4}, (2, 4)),
    "refill": (EAGER, {"algorithm.zero_variance_filter": "refill"}, (2, 5)),
    "a pool whose solved prompts are left out": (
        EAGER,
        {"task.pool": 8, "algorithm.no_positive_resampling": 0.25, "algorithm.min_active_prompts": 3},
        (2, 5),
    ),
}
USUAL = ("waves and evaluations under way", "on-policy", "the middle of a round of ppo")  # of `make test`


@pytest.mark.parametrize(
    "case", [*USUAL, *(pytest.param(case, marks=pytest.mark.slow) for case in sorted(CASES.keys() - USUAL))]
)
def test_a_run_resumed_from_any_checkpoint_equals_the_uninterrupted_one(recipe, tmp_path, monkeypatch, case):
    order, changes, steps = CASES[case]
    if order:
        monkeypatch.setattr(local, "_ORDER", order)
    fields = {"budget.compute": STEPS, "checkpoint.every_steps": 1, "checkpoint.keep_last": 99, "log_rollouts_every": 2}
    wanted = recipe(fields | changes)
    whole = tmp_path / "whole"
    train(wanted, launch(whole))
    expected, end = written(whole), final_bytes(whole)
    assert [line["step"] for line in expected["evaluations.jsonl"]] == [0, 2, 4, 6]
    assert {line["step"] for line in expected["rollouts.jsonl"]} == {2, 4, 6}
    for step in steps:
        resumed = tmp_path / f"from {step}"
        cut_off_at(step, whole, resumed)
        if order:
            state = json.loads((resumed / f"checkpoints/step_{step:06d}/state.json").read_text())
            assert state["waves"], "nothing was under way: the case shows nothing"
            assert state["evaluations"]
        train(wanted, launch(resumed, resume=True, attempt=2))
        assert written(resumed) == expected
        assert final_bytes(resumed) == end


WATCHED = """
import json, os, shutil, signal, sys
from pathlib import Path
import torch
from forecurve.recipes import load_recipe
from trainer.launch import Launch, train

torch.set_num_threads(1)
recipe, root, fatal = load_recipe(json.loads(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3])
directory = root / "run"
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate")
seen, copying = 0, False

def before_a_write():
    # Keep what lies on disk now, or die here without any clean-up.
    global seen, copying
    if copying:
        return
    seen, copying = seen + 1, True
    if seen == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
    if not fatal and directory.exists():
        shutil.copytree(directory, root / f"before {seen:03d}")
    copying = False

def hook(event, arguments):
    writes = event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)
    touched = str(arguments[0]) if arguments else ""
    if (event in CHANGES or writes) and touched.startswith(str(directory)):
        before_a_write()

def flush(descriptor, really=os.fsync):
    before_a_write()
    really(descriptor)

os.fsync = flush
sys.addaudithook(hook)
train(recipe, Launch(directory, ray=False, progress=False))
"""

TINY = {
    "batch.prompts_per_step": 2,
    "batch.generations_per_prompt": 2,
    "generation.max_tokens": 8,
    "evaluation.samples": 1,
    "budget.compute": 2,
    "checkpoint.every_steps": 1,
    "checkpoint.keep_last": 1,
    "log_rollouts_every": 1,
}
"""A run with two checkpoints and the removal of the first."""


def watched(wanted, root: Path, fatal: int) -> int:
    root.mkdir(exist_ok=True)
    command = [sys.executable, "-c", WATCHED, json.dumps(wanted.to_dict()), str(root), str(fatal)]
    return subprocess.run(command, check=False).returncode


def contents(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("apart", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_run_killed_before_any_write_resumes_to_the_same_end(recipe, tmp_path, apart):
    """What lies on disk before each write of a whole run is kept, and each, or every fifth, is resumed once. That a
    real kill -9 leaves just that is checked in the middle of the first checkpoint."""
    wanted = recipe(TINY)
    assert watched(wanted, tmp_path, fatal=0) == 0
    moments = sorted(tmp_path.glob("before *"))
    assert len(moments) > 30  # fewer, and the hook does not see what is written
    middle = next(path for path in moments if (path / "checkpoints/step_000001.tmp/state.json").exists())
    killed = tmp_path / "killed"
    assert watched(wanted, killed, fatal=int(middle.name.removeprefix("before "))) == -signal.SIGKILL
    assert contents(killed / "run").keys() == contents(middle).keys()

    expected, end = written(tmp_path / "run"), final_bytes(tmp_path / "run")
    resumed: list[dict[str, bytes]] = []
    for directory in [*moments[::apart], killed / "run"]:
        if (found := contents(directory)) in resumed:
            continue
        resumed.append(found)
        train(wanted, launch(directory, resume=True, attempt=2))
        assert (directory.name, written(directory)) == (directory.name, expected)
        assert (directory.name, final_bytes(directory)) == (directory.name, end)


def test_a_fork_goes_on_with_the_policy_and_the_compute_of_its_parent_and_names_it(recipe, tmp_path):
    parent, child = tmp_path / "parent", tmp_path / "child"
    train(recipe({"budget.compute": 3}), launch(parent))
    changed = recipe({"budget.compute": 5, "optimizer.learning_rate": 1e-3})
    train(changed, launch(child, source=parent, forked=True))
    found = json.loads((child / "origin.json").read_text())
    assert found["step"] == 3
    assert found["changes"]["optimizer.learning_rate"] == [3e-4, 1e-3]
    says = written(child)
    assert [line["step"] for line in says["metrics.jsonl"]] == [4, 5, 5]
    assert [line["compute"] for line in says["metrics.jsonl"]] == [4, 5, 5]
    judged = says["evaluations.jsonl"]
    assert [line["step"] for line in judged] == [3, 4, 5]
    assert judged[0]["counts"] == written(parent)["evaluations.jsonl"][-1]["counts"]
    assert (parent / "checkpoints/step_000003").exists()


def test_a_fork_trains_on_the_prompts_that_its_parent_had_not_reached(recipe, tmp_path, monkeypatch):
    seen = []
    started = local.LocalWorkers.start_step

    def remember(self, groups):
        seen.append([group.ordinal for group in groups])
        return started(self, groups)

    monkeypatch.setattr(local.LocalWorkers, "start_step", remember)
    train(recipe({"budget.compute": 3}), launch(tmp_path / "parent"))
    seen.clear()
    other = {"budget.compute": 5, "batch.prompts_per_step": 3}
    train(recipe(other), launch(tmp_path / "child", source=tmp_path / "parent", forked=True))
    assert seen == [[12, 13, 14], [15, 16, 17]]  # three batches of four came before


@pytest.mark.parametrize("other", [{"seed": 1}, {"curriculum": "easy-first"}, {}])
def test_a_fork_has_no_prompt_twice_in_an_epoch(recipe, tmp_path, monkeypatch, other):
    seen = []
    started = local.LocalWorkers.start_step

    def remember(self, groups):
        seen.extend(group.prompt.index for group in groups)
        return started(self, groups)

    monkeypatch.setattr(local.LocalWorkers, "start_step", remember)
    pool = {"task.pool": 12, "batch.prompts_per_step": 4}
    train(recipe({"budget.compute": 1} | pool), launch(tmp_path / "parent"))
    came = seen.copy()
    seen.clear()
    changed = recipe({"budget.compute": 4} | pool | other)
    train(changed, launch(tmp_path / "child", source=tmp_path / "parent", forked=True))
    assert len(seen) == 12
    rest_of_the_parents = 0 if other else 12 - len(came)
    new_epoch = seen[rest_of_the_parents:]
    assert len(set(new_epoch)) == len(new_epoch)
    assert len({*came, *seen[:rest_of_the_parents]}) == len(came) + rest_of_the_parents


POOL = {"task.pool": 8, "algorithm.no_positive_resampling": 0.25, "algorithm.min_active_prompts": 3}
NO_POOL = {"task.pool": None, "algorithm.no_positive_resampling": None}


@pytest.mark.parametrize(
    ("before", "after", "anew"),
    [
        (POOL, {"optimizer.learning_rate": 1e-3}, False),
        (POOL, {"algorithm.no_positive_resampling": 0.9, "seed": 1}, False),
        (POOL, {"task.pool": 6}, True),
        (POOL, {"task.max_moves": 9}, True),
        (NO_POOL, {"task.pool": 16}, True),
        (POOL, NO_POOL, False),
    ],
)
def test_a_fork_keeps_the_history_of_its_prompts_and_starts_other_prompts_anew(
    recipe, tmp_path, capsys, before, after, anew
):
    train(recipe({"budget.compute": 4} | before), launch(tmp_path / "parent"))
    changed = recipe({"budget.compute": 6} | before | after)
    train(changed, launch(tmp_path / "child", source=tmp_path / "parent", forked=True, progress=True))
    parent, child = (written(tmp_path / name)["metrics.jsonl"] for name in ("parent", "child"))
    assert child[0]["step"] == 5
    reached, goes_on = (line["metrics"].get("prompts/epoch") for line in (parent[3], child[0]))
    if anew:
        assert goes_on < (reached or 3)
        assert "their order starts anew" in capsys.readouterr().err
    else:
        assert goes_on is None or goes_on >= reached
        assert "anew" not in capsys.readouterr().err


def test_checkpoints_of_chosen_steps_are_kept_for_good(recipe, tmp_path):
    fields = {"checkpoint.every_steps": 1, "checkpoint.keep_last": 1, "checkpoint.keep_every": 2, "budget.compute": 5}
    train(recipe(fields), launch(tmp_path))
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == ["step_000002", "step_000004", "step_000005"]
