"""From a recipe to vLLM's options, and the recipes that cannot have vLLM. No vLLM is needed for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from forecurve.recipes import SCALERL, Recipe, with_changes
from tests.trainer.engines.vllm_parts import make_folder
from trainer.context import tokens_needed
from trainer.engines import vllm_adapter, vllm_setup
from trainer.errors import ConfigurationError
from trainer.models.huggingface import read_config
from trainer.tasks import build_task


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("qwen3"), 0)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_adapter, "missing", lambda: None)


def recipe(folder: Path, **changes: object) -> Recipe:
    model = {"kind": "huggingface", "path": str(folder), "dtype": "fp32"}
    made = Recipe.model_validate(SCALERL.to_dict() | {"model": model})
    return with_changes(made, {"generation.engine": "vllm", **{k.replace("__", "."): v for k, v in changes.items()}})


def test_options_hold_what_the_recipe_says(folder):
    given = recipe(folder, batch__prompts_per_step=4, batch__generations_per_prompt=8, generation__max_tokens=24)
    task = build_task(given)
    made = vllm_setup.options(given, task)
    assert made.model == str(folder)
    assert (made.dtype, made.device, made.tensor_parallel) == ("fp32", "cpu", 1)
    assert made.rows == 32
    assert made.context == 24 + len(task.held_out_prompts(1)[0].tokens)
    assert made.kv_cache_gib == 1


@pytest.mark.parametrize(
    ("resources", "share"),
    [({"gpus": 2}, 1), ({"gpus": 1}, 1 / 2), ({"gpus": 1, "generators": 3}, 1 / 4), ({"gpus": 8, "generators": 3}, 1)],
)
def test_vllm_leaves_of_a_shared_gpu_what_the_other_actors_have(folder, resources, share):
    given = recipe(folder, **{f"resources__{name}": value for name, value in resources.items()})
    made = vllm_setup.options(given, build_task(given), "cuda")
    assert made.memory_share == pytest.approx(vllm_setup.GPU_SHARE * share)


def test_a_budget_beyond_the_models_context_is_refused_with_its_room(folder):
    given = recipe(folder, generation__max_tokens=300)
    with pytest.raises(ConfigurationError, match=r"generation\.max_tokens 300 .* has room for 256"):
        vllm_setup.refuse(given, build_task(given))


@pytest.mark.parametrize(
    ("rotary", "room"),
    [
        (None, 256),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256}, 1024),
        ({"rope_type": "linear", "factor": 2.0}, 512),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 32}, 256),
    ],
)
def test_a_context_that_the_folder_stretches_has_room_for_more(folder, rotary, room):
    given = recipe(folder)
    config = read_config(folder)
    if rotary:
        config.rope_parameters = {"rope_theta": 10000.0} | rotary
    prompt = build_task(given).longest_prompt
    fits = with_changes(given, {"generation.max_tokens": room - prompt})
    assert tokens_needed(fits, build_task(given), config) == room
    beyond = with_changes(given, {"generation.max_tokens": room - prompt + 1})
    with pytest.raises(ConfigurationError, match=f"has room for {room}"):
        tokens_needed(beyond, build_task(given), config)


@pytest.mark.parametrize(
    ("rotary", "room"),
    [
        ({"rope_type": "dynamic", "factor": 4.0}, 256),
        ({"rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": 64}, 64),
    ],
)
def test_a_rotary_embedding_that_turns_by_the_sequences_length_has_its_original_room(folder, rotary, room):
    given = recipe(folder)
    config = read_config(folder)
    config.rope_parameters = {"rope_theta": 10000.0} | rotary
    prompt = build_task(given).longest_prompt
    assert tokens_needed(with_changes(given, {"generation.max_tokens": room - prompt}), build_task(given), config)
    beyond = with_changes(given, {"generation.max_tokens": room - prompt + 1})
    with pytest.raises(ConfigurationError, match=f"has room for {room} .its {rotary['rope_type']} rotary embedding"):
        tokens_needed(beyond, build_task(given), config)


def test_heads_that_vllms_cpu_kernels_do_not_take_are_refused_before_anything_starts(tmp_path):
    given = recipe(make_folder(tmp_path / "narrow", 0, head_size=16))
    with pytest.raises(ConfigurationError, match=r"heads of 32, .* but those of model\.path .*narrow' have 16"):
        vllm_setup.refuse(given, build_task(given))
    assert vllm_setup.options(given, build_task(given), "cuda").device == "cuda"  # a GPU's kernels take them


def test_without_vllm_a_recipe_for_it_is_refused_and_one_for_the_torch_engine_is_not(folder, monkeypatch):
    monkeypatch.setattr(vllm_adapter, "missing", lambda: "vLLM is not installed")
    given = recipe(folder)
    with pytest.raises(ConfigurationError, match=r"generation\.engine is vllm, but vLLM is not installed"):
        vllm_setup.refuse(given, build_task(given))
    vllm_setup.refuse(with_changes(given, {"generation.engine": "torch"}), build_task(given))


@pytest.mark.parametrize(("tokens", "gib"), [(1, 1), (2**20, 1), (2**20 + 1, 2), (3 * 2**20, 3)])
def test_the_cache_has_room_for_every_token_in_whole_gib(folder, monkeypatch, tokens, gib):
    monkeypatch.setattr(vllm_setup.os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**22}.get)  # 16 GiB
    config = read_config(folder)  # keys and values of 2 layers, 2 heads, 32 wide, 4 bytes: 1,024 bytes a token
    assert vllm_setup._cache_gib(config, "fp32", tokens) == gib
    assert vllm_setup._cache_gib(config, "fp32", 2**40) == 4  # a quarter of the memory
