"""From a recipe to a vLLM engine, and why a recipe cannot have one here. Imports neither vLLM nor what it needs."""

from __future__ import annotations

import os
from typing import Any

import torch

from forecurve.recipes import Recipe, schema
from trainer.context import tokens_needed
from trainer.errors import ConfigurationError
from trainer.tasks import Task

from .base import Engine, SamplingConfig
from .vllm_adapter import CPU_HEAD_SIZES, VllmOptions, check

MAX_ROWS = 256
"""Sequences decoded together at most; the rest waits its turn inside vLLM."""
GIB = 2**30
MEMORY_SHARE = 0.25
"""Of a machine's memory, the most that keys and values may take on a CPU."""
GPU_SHARE = 0.85
"""Of a GPU that a generator has to itself, what vLLM takes at its start; of a part of one, that share of the part."""


def refuse(recipe: Recipe, task: Task) -> None:
    """Raise ConfigurationError when the recipe asks for vLLM and this machine or model cannot have it."""
    if recipe.generation.engine == "vllm":
        check(options(recipe, task), recipe.generation.temperature)


def build(recipe: Recipe, task: Task, sampling: SamplingConfig, device: str) -> Engine:
    """A running vLLM engine with the weights of the model's folder, which are version 0."""
    from .vllm_engine import VllmEngine

    return VllmEngine(options(recipe, task, device), sampling)


def options(recipe: Recipe, task: Task, device: str = "cpu") -> VllmOptions:
    """How vLLM is to run the recipe's model.

    Raises:
        ConfigurationError: the folder is no model, has no room for a prompt and its response, or has attention heads
            that vLLM cannot run on a CPU.
    """
    model = recipe.model
    assert isinstance(model, schema.HuggingFaceModel), model.kind  # the recipe refuses any other
    from trainer.models.huggingface import read_config

    config = read_config(model.path)
    context = tokens_needed(recipe, task, config)
    on_gpu = device.startswith("cuda")
    if not on_gpu and _head_size(config) not in CPU_HEAD_SIZES:
        sizes = ", ".join(map(str, CPU_HEAD_SIZES))
        raise ConfigurationError(
            f"generation.engine is vllm, whose CPU kernels take attention heads of {sizes}, "
            f"but those of model.path {model.path!r} have {_head_size(config)}; use generation.engine torch"
        )
    rows = min(MAX_ROWS, recipe.batch.prompts_per_step * recipe.batch.generations_per_prompt)
    return VllmOptions(
        model=model.path,
        dtype=model.dtype,
        device="cuda" if on_gpu else "cpu",
        context=context,
        rows=rows,
        tensor_parallel=_visible_devices() if on_gpu else 1,
        memory_share=GPU_SHARE * _part_of_gpu(recipe),
        kv_cache_gib=_cache_gib(config, model.dtype, rows * context),
        threads=torch.get_num_threads(),
    )


def _visible_devices() -> int:
    """GPUs of this process: Ray shows a generator its own alone."""
    return max(1, torch.cuda.device_count())


def _part_of_gpu(recipe: Recipe) -> float:
    """What a generator may use of its GPU: the others are those of actors that share it."""
    resources = recipe.resources
    return min(1.0, (resources.gpus or 1.0) / (resources.generators + resources.learners))


def _head_size(config: Any) -> int:
    width: int = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return width


def _cache_gib(config: Any, dtype: str, tokens: int) -> int:
    """Whole GiB for the keys and values of so many tokens, one at least, and no more than its share of the memory."""
    heads: int = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    wanted: int = tokens * 2 * config.num_hidden_layers * heads * _head_size(config) * (2 if dtype == "bf16" else 4)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, -(-min(wanted, int(MEMORY_SHARE * memory)) // GIB))
