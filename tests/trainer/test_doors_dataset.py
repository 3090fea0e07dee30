"""A run on a file of prompts with a Hugging Face model, with every ingredient, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from trainer.__main__ import main

PHRASE = "\nAnswer: "


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A random Qwen3 of one layer with one token a byte, and 200 sums of two tasks."""
    directory = tmp_path_factory.mktemp("dataset")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    body = Tokenizer(models.BPE({"<end>": 0} | {letter: i + 1 for i, letter in enumerate(alphabet)}, []))
    body.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    body.decoder = decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=body, eos_token="<end>", pad_token="<end>")
    tokenizer.save_pretrained(directory / "model")
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


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("task.train=nowhere.jsonl", "task.train"),
        ("model.path=nowhere", "model.path"),
        ("evaluation.prompts=128", "evaluation.prompts"),
    ],
)
def test_what_is_missing_is_named_by_its_field_before_anything_is_written(folder, tmp_path, capsys, change, field):
    file, out = tmp_path / "recipe.json", tmp_path / "run"
    file.write_text(json.dumps(recipe(folder)))
    assert main(["--recipe", str(file), "--out", str(out), "--no-ray", "--set", change]) == 2
    assert field in capsys.readouterr().err
    assert not out.exists()
