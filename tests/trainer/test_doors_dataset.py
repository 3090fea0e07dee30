"""A run on a file of prompts with a Hugging Face model, with every ingredient, through the command line."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from forecurve.recipes import load_recipe
from tests.trainer.byte_tokenizer import byte_tokenizer
from trainer.__main__ import main
from trainer.base_weights.weights import base_weights
from trainer.errors import ConfigurationError
from trainer.tasks import _dataset_task, build_task

PHRASE = "\nAnswer: "


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A random Qwen3 of one layer with one token a byte, and 200 sums of two tasks."""
    directory = tmp_path_factory.mktemp("dataset")
    byte_tokenizer(pad_token="<end>").save_pretrained(directory / "model")
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=264,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=256,
        eos_token_id=0,
    )
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(directory / "model")
    rows = [{"prompt": f"{i}+{i}=", "answer": str(2 * i), "task": "even" if i % 2 else "odd"} for i in range(200)]
    (directory / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


def recipe(folder: Path) -> dict[str, Any]:
    return {
        "task": {
            "kind": "dataset",
            "train": str(folder / "train.jsonl"),
            "chat_template": False,
            "verifiers": {"even": "exact", "odd": "exact"},
            "mixture": {"even": 3, "odd": 1},
        },
        "model": {"kind": "huggingface", "path": str(folder / "model")},
        "algorithm": {"no_positive_resampling": 0.9, "zero_variance_filter": "off"},
        "length_control": {
            "kind": "interruption",
            "after_low": 4,
            "after_high": 6,
            "phrase": PHRASE,
            "answer_tokens": 4,
        },
        "batch": {"prompts_per_step": 4, "generations_per_prompt": 2},
        "generation": {"max_tokens": 24},
        "evaluation": {"prompts": 16, "samples": 1, "every_steps": 2},
        "budget": {"unit": "steps", "compute": 2},
        "log_rollouts_every": 1,
    }


def test_it_trains_evaluates_and_keeps_rollouts_with_the_phrase_in_the_interrupted_ones(folder, tmp_path):
    file, out = tmp_path / "recipe.json", tmp_path / "run"
    file.write_text(json.dumps(recipe(folder)))
    assert main(["--recipe", str(file), "--out", str(out), "--no-ray"]) == 0
    evaluations = [json.loads(line) for line in (out / "evaluations.jsonl").read_text().splitlines()]
    assert [line["step"] for line in evaluations] == [0, 2]
    rollouts = [json.loads(line) for line in (out / "rollouts.jsonl").read_text().splitlines()]
    assert {line["step"] for line in rollouts} == {1, 2}
    interrupted = [line for line in rollouts if line["interrupted"]]
    assert interrupted
    assert all(PHRASE in line["response"] for line in interrupted)
    assert all(line["tokens"] <= 6 + len(PHRASE) + 4 for line in interrupted)
    assert all(line["reward"] == (1 if line["passed"] else -1) for line in rollouts)


def test_a_response_ends_with_whatever_the_folders_generation_config_says_ends_one(folder, tmp_path):
    shutil.copytree(folder / "model", tmp_path / "model")
    transformers.GenerationConfig(eos_token_id=list(range(1, 264))).save_pretrained(tmp_path / "model")
    body = recipe(folder) | {"model": {"kind": "huggingface", "path": str(tmp_path / "model")}}
    file, out = tmp_path / "recipe.json", tmp_path / "run"
    file.write_text(json.dumps(body))
    assert main(["--recipe", str(file), "--out", str(out), "--no-ray"]) == 0
    rollouts = [json.loads(line) for line in (out / "rollouts.jsonl").read_text().splitlines()]
    assert rollouts
    assert all(line["finished"] and line["tokens"] == 1 for line in rollouts)


def test_a_model_learns_at_the_lengths_at_which_it_was_compared_with_its_own_forward(folder, tmp_path):
    """Prompts of three tokens and responses of four, as that comparison has."""
    body = recipe(folder) | {"length_control": {"kind": "none"}, "generation": {"max_tokens": 4}}
    of_sums = {"train": str(tmp_path / "sums.jsonl"), "held_out_share": 0.3, "verifiers": {"math": "exact"}}
    body["task"] |= of_sums | {"mixture": {}}
    rows = [{"prompt": f"{i}+{j}", "answer": str(i + j)} for i in range(9) for j in range(9)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    file, out = tmp_path / "recipe.json", tmp_path / "run"
    file.write_text(json.dumps(body))
    assert main(["--recipe", str(file), "--out", str(out), "--no-ray"]) == 0


BUSY = """
import time

def check(response, answer):
    end = time.process_time() + 0.2
    while time.process_time() < end: pass
    return True
"""


@pytest.mark.slow  # 13 s; the parts are in tests/trainer/verifiers
def test_a_budget_of_cpu_seconds_holds_what_verifiers_take_in_their_own_processes(folder, tmp_path, monkeypatch):
    (tmp_path / "busy_verifier.py").write_text(BUSY)
    monkeypatch.syspath_prepend(tmp_path)
    shutil.copytree(folder / "model", tmp_path / "model")
    transformers.GenerationConfig(eos_token_id=list(range(1, 264))).save_pretrained(tmp_path / "model")
    body = recipe(folder) | {"model": {"kind": "huggingface", "path": str(tmp_path / "model")}}
    body["task"] |= {"verifiers": {"even": "busy_verifier:check", "odd": "busy_verifier:check"}}
    body |= {
        "budget": {"unit": "CPU-seconds", "compute": 1000.0, "max_steps": 2},
        "evaluation": {"prompts": 16, "samples": 1},
    }
    file, out = tmp_path / "recipe.json", tmp_path / "run"
    file.write_text(json.dumps(body))
    assert main(["--recipe", str(file), "--out", str(out), "--no-ray"]) == 0
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    told = [line.get("metrics", line) for line in lines]
    assert max(line.get("ledger/compute", 0.0) for line in told) > 2 * 4 * 2 * 0.2  # of two steps of four pairs


ALWAYS = """
from forecurve.verifiers import register

@register("always")
def always(response, answer):
    return True
"""


@pytest.fixture
def by_always(folder, tmp_path, monkeypatch) -> dict[str, Any]:
    """A recipe whose answers are judged by a verifier of the user's, in a module that only this process knows of."""
    (tmp_path / "always_right.py").write_text(ALWAYS)
    monkeypatch.syspath_prepend(tmp_path)
    body = recipe(folder)
    body["task"] |= {"verifiers": {"even": "always", "odd": "always"}, "verifier_modules": ["always_right"]}
    # An answer passes only if it ends, which within 200 tokens a good part of random ones do.
    return body | {"length_control": {"kind": "none"}, "generation": {"max_tokens": 200}}


def test_a_registered_verifier_judges_a_run(by_always, tmp_path):
    file, out = tmp_path / "recipe.json", tmp_path / "run"
    file.write_text(json.dumps(by_always))
    assert main(["--recipe", str(file), "--out", str(out), "--no-ray"]) == 0
    rollouts = [json.loads(line) for line in (out / "rollouts.jsonl").read_text().splitlines()]
    assert any(line["finished"] for line in rollouts)
    assert all(line["passed"] == line["finished"] for line in rollouts)


def test_a_verifier_that_returns_a_reward_ends_the_run_by_name(by_always, tmp_path, capsys):
    """-1 for a wrong answer is true in Python: every answer would be right."""
    (tmp_path / "always_right.py").write_text(ALWAYS.replace("return True", "return -1.0"))
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps(by_always))
    assert main(["--recipe", str(file), "--out", str(tmp_path / "run"), "--no-ray"]) == 2
    assert "task.verifiers names 'always', which returned -1.0 for a response; return True" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ALWAYS.replace('"always"', '"allways"'), "known are math, code, exact, allways"),
        ("import no_such_module_here", "task.verifier_modules names 'always_right', and its import fails"),
    ],
)
def test_a_verifier_that_nobody_registers_is_refused_before_anything_is_written(
    by_always, tmp_path, capsys, text, message
):
    (tmp_path / "always_right.py").write_text(text)
    file, out = tmp_path / "recipe.json", tmp_path / "run"
    file.write_text(json.dumps(by_always))
    assert main(["--recipe", str(file), "--out", str(out), "--no-ray"]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("own_ray")
def test_generators_in_processes_of_their_own_find_it(by_always, tmp_path):
    from trainer.workers.ray_actors import RayWorkers, placed

    wanted = load_recipe(by_always | {"resources": {"stall_seconds": 120}})
    with placed(wanted) as place, closing(RayWorkers(wanted, base_weights(wanted, tmp_path), place)) as workers:
        workers.start_evaluation(workers.initial_weights())
        results: list[Any] = []
        while not results:
            results = [result for _, result in workers.wait(1.0)]
    judged = results[0]
    assert 0 < sum(judged.counts) == round((1 - judged.details["truncated_share"]) * len(judged.counts))


def test_a_generator_whose_machine_lacks_the_module_says_so_before_its_first_work(by_always, tmp_path):
    from trainer.workers.actors import GeneratorActor

    (tmp_path / "always_right.py").unlink()
    wanted = load_recipe(by_always)
    with pytest.raises(ConfigurationError, match=r"task\.verifier_modules names 'always_right'"):
        GeneratorActor(wanted, base_weights(wanted, tmp_path), "cpu", 1).ready()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("task.train=nowhere.jsonl", "task.train"),
        ("model.path=nowhere", "model.path"),
        ("evaluation.prompts=128", "evaluation.prompts"),
        ("task.mixture={even: 1}", "task.mixture and the data disagree about 'odd'"),
        ("generation.max_tokens=252", "generation.max_tokens 252 and the longest prompt, 8, make 260 tokens"),
        ("length_control.phrase=fifteen letters", "length_control.phrase is 'fifteen letters', 15 tokens"),
        ("model.path={bare}", "has no weights"),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
def test_what_is_missing_is_named_by_its_field_before_anything_is_written(folder, tmp_path, capsys, change, field, dry):
    file, out, bare = tmp_path / "recipe.json", tmp_path / "run", tmp_path / "bare"
    shutil.copytree(folder / "model", bare, ignore=shutil.ignore_patterns("*.safetensors"))
    file.write_text(json.dumps(recipe(folder)))
    arguments = ["--recipe", str(file), "--no-ray", "--set", change.replace("{bare}", str(bare))]
    assert main([*arguments, "--dry-run"] if dry else [*arguments, "--out", str(out)]) == 2
    assert field in capsys.readouterr().err
    assert not out.exists()


def test_a_prompt_and_a_response_that_fill_the_model_s_context_are_taken(folder, tmp_path, capsys):
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps(recipe(folder)))
    assert main(["--recipe", str(file), "--dry-run", "--no-ray", "--set", "generation.max_tokens=248"]) == 0


def test_a_fork_to_a_mixture_starts_the_order_anew_and_a_changed_file_is_no_way_to_resume(folder, tmp_path, capsys):
    file, data = tmp_path / "recipe.json", tmp_path / "train.jsonl"
    data.write_text((folder / "train.jsonl").read_text())
    body = recipe(folder)
    body["task"] |= {"mixture": {}, "train": str(data)}
    file.write_text(json.dumps(body | {"budget": {"unit": "steps", "compute": 2}}))
    parent, child = str(tmp_path / "parent"), str(tmp_path / "child")
    assert main(["--recipe", str(file), "--out", parent, "--no-ray"]) == 0
    changes = ["--set", "task.mixture={even: 1, odd: 3}", "--set", "budget.compute=3"]
    assert main(["--fork", parent, "--out", child, "--no-ray", *changes]) == 0
    assert "the training prompts or their mixture are not the parent's" in capsys.readouterr().err

    data.write_text("".join(data.read_text().splitlines(keepends=True)[:-20]))
    _dataset_task.cache_clear()  # as in a process of its own
    assert main(["--resume", "--out", child, "--no-ray"]) == 2
    assert "the files of task.train have changed since" in capsys.readouterr().err


@pytest.mark.slow  # 8 s; what a checkpoint keeps is in tests/trainer/records
def test_what_verifiers_counted_goes_on_where_the_checkpoint_was_written(by_always, tmp_path):
    file, out = tmp_path / "recipe.json", tmp_path / "run"
    file.write_text(
        json.dumps(by_always | {"checkpoint": {"every_steps": 2}, "budget": {"unit": "steps", "compute": 4}})
    )
    assert main(["--recipe", str(file), "--out", str(out), "--no-ray"]) == 0
    shutil.rmtree(out / "checkpoints" / "step_000004")
    assert main(["--resume", "--out", str(out), "--no-ray"]) == 0
    said = [json.loads(line)["metrics"] for line in (out / "metrics.jsonl").read_text().splitlines()][:4]
    judged = [metrics["verifier/judged"] for metrics in said]
    assert judged == sorted(judged)
    assert judged[2] > judged[1] > 0


@pytest.fixture
def finished(folder, tmp_path) -> tuple[Path, dict[str, Any], list[str]]:
    """A finished run on files of its own; its directory, its recipe, and the arguments that resume it at step 2."""
    home = tmp_path / "home"
    shutil.copytree(folder, home)
    rows = [{"prompt": f"{i}*{i}=", "answer": str(i * i), "task": "odd"} for i in range(40)]
    (home / "held_out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _graded(home, 1.0)
    body = recipe(home) | {"checkpoint": {"every_steps": 2}, "budget": {"unit": "steps", "compute": 4}}
    body["curriculum"] = "easy-first"
    body["task"]["held_out"] = str(home / "held_out.jsonl")
    body["algorithm"]["kl_coefficient"] = 0.1
    file, out = home / "recipe.json", tmp_path / "run"
    file.write_text(json.dumps(body))
    assert main(["--recipe", str(file), "--out", str(out), "--no-ray"]) == 0
    return home, body, ["--resume", str(out / "checkpoints" / "step_000002"), "--no-ray"]


def _graded(home: Path, sign: float) -> None:
    rows = [json.loads(line) for line in (home / "train.jsonl").read_text().splitlines()]
    graded = [row | {"difficulty": sign * place} for place, row in enumerate(rows)]
    (home / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in graded))


def _grade_otherwise(home: Path) -> None:
    _graded(home, -1.0)


def _append_row(home: Path) -> None:
    with (home / "train.jsonl").open("a") as file:
        file.write(json.dumps({"prompt": "1000+1000=", "answer": "2000", "task": "odd"}) + "\n")


def _judge_otherwise(home: Path) -> None:
    text = (home / "held_out.jsonl").read_text()
    (home / "held_out.jsonl").write_text(text.replace('"answer": "', '"answer": "7'))


def _begin_otherwise(home: Path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(home / "model")
    with torch.no_grad():
        model.model.norm.weight.mul_(1.01)
    model.save_pretrained(home / "model")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_append_row, "made with other training prompts or difficulties"),
        (_grade_otherwise, "made with other training prompts or difficulties"),
        (_judge_otherwise, "task.held_out"),
        (_begin_otherwise, "model.path"),
    ],
)
def test_a_resume_that_would_read_something_else_is_refused_and_touches_nothing(change, said, finished, capsys):
    home, _, resume = finished
    run = Path(resume[1]).parents[1]

    def held() -> dict[str, bytes]:
        return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}

    before = held()
    change(home)
    _dataset_task.cache_clear()  # as in a process of its own
    assert main(resume) == 2
    assert said in capsys.readouterr().err
    assert held() == before


def test_the_files_of_a_run_as_they_were_are_gone_on_with(finished):
    assert main(finished[2]) == 0


def test_a_dry_run_counts_the_prompts_that_are_trained_on(folder, tmp_path, capsys):
    body = recipe(folder)
    body["task"] |= {"mixture": {"even": 1, "odd": 0}, "held_out_share": 0.4}
    (file := tmp_path / "recipe.json").write_text(json.dumps(body))
    assert main(["--recipe", str(file), "--dry-run"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert 40 < said["training_prompts"] < 80, "three fifths of the even ones"
    assert said["rows_left_out"]["without_weight"] == 100


def test_a_mixture_is_judged_on_the_tasks_that_it_trains_on_each_told_apart(folder, tmp_path):
    rates = {}
    for name, mixture in (("both", {"even": 1, "odd": 1}), ("one", {"even": 1, "odd": 0})):
        body = recipe(folder) | {"evaluation": {"prompts": 16, "samples": 2, "every_steps": 2}}
        body["task"] |= {"mixture": mixture, "held_out_share": 0.4}
        file, out = tmp_path / f"{name}.json", tmp_path / name
        file.write_text(json.dumps(body))
        assert main(["--recipe", str(file), "--out", str(out), "--no-ray"]) == 0
        last = json.loads((out / "evaluations.jsonl").read_text().splitlines()[-1])
        rates[name] = {key: rate for key, rate in last["details"].items() if key.startswith("task/")}
    assert set(rates["both"]) == {"task/even", "task/odd"}
    assert rates["one"] == {}
    kept = build_task(load_recipe(body))
    assert {prompt.task for prompt in kept.held_out_prompts(16)} == {"even"}
    kept.close()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"algorithm": {"no_positive_resampling": 0.9, "min_active_prompts": 1000}},
            "no prompt could ever be left out",
        ),
        ({"curriculum": "easy-first"}, "no row of task.train has another `difficulty`"),
    ],
)
def test_fields_that_would_do_nothing_with_these_data_are_refused(changes, said, folder, tmp_path, capsys):
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps(recipe(folder) | changes))
    assert main(["--recipe", str(file), "--dry-run"]) == 2
    assert said in capsys.readouterr().err
