"""The command line of the trainer: where a run begins, with which recipe, and what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from forecurve.recipes import PRESETS, SCALERL, load_recipe, with_changes
from trainer.__main__ import main
from trainer.arguments import parser
from trainer.engines.torch_engine import TorchEngine
from trainer.records import checkpoint as checkpoints

from .conftest import SMALL


def lines(directory: Path, name: str = "evaluations.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / name).read_text().splitlines()]


def steps(directory: Path) -> list[int]:
    return [line["step"] for line in lines(directory)]


def counts(directory: Path) -> list[list[int]]:
    return [line["counts"] for line in lines(directory)]


@pytest.fixture(scope="module")
def first_run(tmp_path_factory) -> Path:
    """A run of six steps with checkpoints at 3 and 6."""
    directory = tmp_path_factory.mktemp("first")
    file = directory / "recipe.yaml"
    file.write_text(yaml.safe_dump(with_changes(SCALERL, SMALL).to_dict()))
    assert main(["--recipe", str(file), "--out", str(directory / "a"), "--no-ray"]) == 0
    return directory / "a"


@pytest.fixture
def run(first_run, tmp_path, capsys):
    """Calls the trainer in this process; a copy of the first run lies in `tmp_path/a`."""
    shutil.copytree(first_run, tmp_path / "a")

    def call(*arguments: str | Path) -> tuple[int, str]:
        code = main([str(argument) for argument in arguments])
        return code, capsys.readouterr().err

    return call


def test_resuming_needs_no_recipe_and_takes_that_of_the_checkpoint(run, tmp_path):
    code, said = run("--resume", "--out", tmp_path / "a", "--no-ray")
    assert (code, steps(tmp_path / "a")) == (0, [0, 2, 4, 6])
    assert "last step" in said or "budget of 6 steps reached" in said


@pytest.mark.parametrize("fork", [False, True])
def test_a_damaged_checkpoint_that_is_passed_over_is_named(fork, run, tmp_path):
    out = tmp_path / "a"
    (out / "checkpoints" / "step_000006" / "learner.safetensors").write_bytes(b"")
    code, said = run(*(["--fork", out, "--out", tmp_path / "b"] if fork else ["--resume", out]), "--no-ray")
    assert code == 0
    assert "goes on from step 3: step_000006 is damaged" in said


@pytest.mark.parametrize("said", [True, False])
def test_going_on_from_an_earlier_checkpoint_sets_later_ones_aside_and_takes_the_same_way(said, run, tmp_path):
    out = tmp_path / "a"
    into = ["--out", out] if said else []
    before, newest = counts(out), checkpoints.newest_valid(out / "checkpoints").digest
    assert run("--resume", out / "checkpoints" / "step_000003", *into, "--no-ray")[0] == 0
    assert steps(out) == [0, 2, 4, 6]
    assert counts(out) == before
    assert {line["attempt"] for line in lines(out, "metrics.jsonl") if line["step"] > 3} == {2}
    aside = checkpoints.validated(out / "checkpoints" / "superseded_step_000006")
    assert aside is not None
    assert aside.digest == newest


def test_a_run_can_go_on_in_another_directory_which_names_its_parent(run, tmp_path):
    parent, out = tmp_path / "a", tmp_path / "b"
    assert run("--resume", parent / "checkpoints" / "step_000003", "--out", out, "--no-ray")[0] == 0
    origin = json.loads((out / "origin.json").read_text())
    assert origin["parent"] == str((parent / "checkpoints" / "step_000003").resolve())
    assert origin["step"] == 3
    assert origin["changes"] == {}
    assert steps(out)[-1] == 6
    assert counts(out)[-1] == counts(parent)[-1]
    assert steps(parent) == [0, 2, 4, 6]


def test_a_fork_changes_the_recipe_and_records_what_it_changed(run, tmp_path):
    parent, out = tmp_path / "a", tmp_path / "b"
    change = ("--set", "optimizer.learning_rate=1e-3", "--set", "budget.compute=8")
    assert run("--fork", parent, "--out", out, "--no-ray", *change)[0] == 0
    origin = json.loads((out / "origin.json").read_text())
    assert origin["changes"] == {"optimizer.learning_rate": [0.0003, 0.001], "budget.compute": [6.0, 8.0]}
    assert origin["checkpoint_digest"] == checkpoints.newest_valid(parent / "checkpoints").digest
    own = checkpoints.newest_valid(out / "checkpoints")
    assert own.step == 8
    stored = load_recipe(json.loads(own.read("state.json"))["recipe"])
    assert stored.digest == origin["recipe_digest"]
    assert stored.optimizer.learning_rate == 1e-3


def test_a_fork_that_was_broken_off_resumes_as_itself(run, tmp_path):
    out = tmp_path / "b"
    assert run("--fork", tmp_path / "a", "--out", out, "--no-ray", "--set", "budget.compute=8")[0] == 0
    code, _ = run("--resume", "--out", out, "--no-ray")
    assert (code, steps(out)[-1]) == (0, 8)


def test_a_changed_recipe_is_refused_by_its_fields_with_fork_as_the_way_out(run, tmp_path):
    before = counts(tmp_path / "a")
    code, said = run("--resume", "--out", tmp_path / "a", "--no-ray", "--set", "optimizer.learning_rate=1e-3")
    assert code == 2
    assert "optimizer.learning_rate 0.0003 -> 0.001" in said
    assert "--fork" in said
    assert counts(tmp_path / "a") == before


@pytest.mark.parametrize("flag", ["--resume", "--fork"])
def test_a_directory_with_a_run_of_its_own_takes_no_other(run, tmp_path, flag):
    assert (
        run(
            "--fork",
            tmp_path / "a",
            "--out",
            tmp_path / "b",
            "--no-ray",
            "--set",
            "seed=1",
            "--set",
            "budget.compute=7",
        )[0]
        == 0
    )
    before = (tmp_path / "b" / "metrics.jsonl").read_bytes()
    code, said = run(flag, tmp_path / "a", "--out", tmp_path / "b", "--no-ray")
    assert code == 2
    assert "holds" in said
    assert (tmp_path / "b" / "metrics.jsonl").read_bytes() == before


def test_a_fork_beyond_the_last_step_is_refused(run, tmp_path):
    code, said = run("--fork", tmp_path / "a", "--out", tmp_path / "b", "--no-ray", "--set", "budget.max_steps=5")
    assert code == 2
    assert "is of step 6, beyond budget.max_steps 5" in said
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("optimizer.learning_rate=1e-3", "budget.compute is 6 steps, and 6 were spent up to step 6"),
        ("budget.max_steps=6", "budget.max_steps is 6, and the checkpoint is of step 6 already"),
    ],
)
def test_a_fork_that_would_train_nothing_is_refused(run, tmp_path, change, said):
    more = ["--set", "budget.compute=9"] if "max_steps" in change else []
    code, told = run("--fork", tmp_path / "a", "--out", tmp_path / "b", "--no-ray", "--set", change, *more)
    assert code == 2
    assert said in told
    assert not (tmp_path / "b" / "evaluations.jsonl").exists()
    assert run("--fork", tmp_path / "a", "--out", tmp_path / "b", "--no-ray", "--set", "budget.compute=8")[0] == 0


def test_there_must_be_a_checkpoint_to_go_on_from(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    for source, message in (("nowhere", "is no directory"), ("empty", "holds no valid checkpoint")):
        arguments = ["--fork", str(tmp_path / source), "--out", str(tmp_path / "b"), "--no-ray"]
        assert main(arguments) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--recipe", "preset:scalerl"],
        ["--run", "--recipe", "preset:scalerl"],
        ["--resume"],
        ["--fork", "a"],
        ["--resume", "a", "--fork", "b", "--out", "c"],
        ["--recipe", "preset:scalerl", "--out", "a", "--engine", "sglang"],
    ],
)
def test_arguments_that_make_no_run_are_refused(arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("named", "text", "message"),
    [
        ("scalerl", None, "--recipe = 'scalerl': there is no such file; the preset is preset:scalerl"),
        (
            "sweep.yaml",
            "preset: scalerl\ndesign: {kind: leave_one_out}",
            "this is a sweep, no recipe; `forecurve sweep",
        ),
        ("empty.yaml", "# later", "recipe = 'nothing': a recipe is a mapping of sections"),
    ],
)
def test_what_is_no_recipe_is_told_as_what_it_is(named, text, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path(named).write_text(text)
    assert main(["--recipe", named, "--out", "a"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("error: ") == 1


@pytest.mark.parametrize("threads", ["0", "-3", "two"])
def test_threads_are_a_number_from_one_on(threads, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--recipe", "preset:scalerl", "--out", "a", "--threads", threads])
    assert caught.value.code == 2
    assert f"'{threads}' is no number of threads; give 1 or more" in capsys.readouterr().err


def test_the_engine_is_a_field_of_the_recipe(capsys):
    assert main(["--recipe", "preset:scalerl", "--dry-run", "--engine", "vllm"]) == 2
    assert "generation.engine = 'vllm': vllm cannot load the tiny model" in capsys.readouterr().err
    assert main(["--recipe", "preset:scalerl", "--dry-run", "--engine", "torch"]) == 0
    assert json.loads(capsys.readouterr().out)["recipe"]["generation"]["engine"] == "torch"


def test_a_dry_run_whose_reader_has_gone_ends_quietly(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as piped:
        monkeypatch.setattr("sys.stdout", piped)
        assert main(["--recipe", "preset:scalerl", "--dry-run"]) == 0


def test_a_dry_run_refuses_what_this_machine_cannot_run(capsys):
    assert main(["--recipe", "preset:scalerl", "--dry-run", "--set", "budget.unit=GPU-hours"]) == 2
    assert "resources.gpus is 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["length_control.phrase=hello"], "'hello' holds 'h', which the torus has no token for"),
        (["length_control.phrase='>>>'"], "length_control.phrase is '>>>', 3 tokens: .* makes 26, but .* is 24"),
        (["task.pool=100000", "task.min_moves=1", "task.max_moves=1"], "task.pool is 100000 but there are only about"),
    ],
)
def test_a_dry_run_refuses_what_the_run_would(changes, message, capsys):
    arguments = [part for change in changes for part in ("--set", change)]
    assert main(["--recipe", "preset:scalerl", "--dry-run", *arguments]) == 2
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_can_be_run(name, capsys):
    assert main(["--recipe", f"preset:{name}", "--dry-run", "--no-ray"]) == 0
    assert json.loads(capsys.readouterr().out)["digest"] == PRESETS[name].digest


def test_a_number_is_read_as_people_write_it(capsys):
    assert main(["--recipe", "preset:scalerl", "--dry-run", "--set", "optimizer.learning_rate=1e-3"]) == 0
    assert json.loads(capsys.readouterr().out)["recipe"]["optimizer"]["learning_rate"] == 0.001


def test_help_shows_examples_for_every_way_to_begin():
    text = parser().format_help()
    for flag in ("--recipe preset:scalerl --out", "--dry-run", "--resume runs/a", "--fork runs/a", "exit codes"):
        assert flag in text


def test_what_the_arguments_rule_out_is_told_before_torch_is_imported(tmp_path):
    code = (
        "import sys; from trainer.__main__ import main; "
        "ended = main(['--recipe', 'preset:scalerl', '--out', 'a', '--set', 'seed=many']); "
        "print(ended, [name for name in ('torch', 'ray', 'vllm') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout == "2 []\n"
    assert "error: seed = " in found.stderr


def test_weights_by_broadcast_in_one_process_are_refused_by_name(capsys, tmp_path):
    change = "resources.weight_transfer=collective"
    assert main(["--recipe", "preset:scalerl", "--out", str(tmp_path / "a"), "--no-ray", "--set", change]) == 2
    assert "resources.weight_transfer is collective but --no-ray" in capsys.readouterr().err


def test_a_job_without_its_service_is_told_what_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("FORECURVE_URL", raising=False)
    assert main(["--run", "--out", str(tmp_path / "a")]) == 2
    assert "FORECURVE_URL is not set" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["generators", "learners"])
def test_one_process_refuses_to_be_several(name, capsys):
    change = f"resources.{name}=2"
    assert main(["--recipe", "preset:scalerl", "--dry-run", "--no-ray", "--set", change]) == 2
    assert f"resources.{name} is 2 but --no-ray is one process" in capsys.readouterr().err


def test_a_schedule_whose_end_nobody_knows_is_refused(capsys):
    falling = ["--recipe", "preset:scalerl", "--dry-run", "--set", "optimizer.schedule=cosine"]
    assert main([*falling, "--set", "budget.unit=CPU-seconds"]) == 2
    assert "set budget.max_steps" in capsys.readouterr().err
    assert main([*falling, "--set", "budget.max_steps=500"]) == 0
    assert main([*falling, "--set", "budget.unit=steps", "--set", "budget.compute=500.5"]) == 0


def test_a_generator_without_memory_says_which_fields_to_lower(capsys, monkeypatch, tmp_path):
    def fail(*_):
        torch.empty(1 << 46)  # a real failure of torch's allocator

    monkeypatch.setattr(TorchEngine, "_sampled", fail)
    assert main(["--recipe", "preset:scalerl", "--out", str(tmp_path / "a"), "--no-ray"]) == 1
    assert "a generator ran out of memory at" in (said := capsys.readouterr().err)
    assert "lower batch.prompts_per_step" in said
