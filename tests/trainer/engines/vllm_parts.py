"""Tiny models on disk, and plain forwards of them that know nothing of engines or policies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, DynamicCache, PretrainedConfig, PreTrainedModel, Qwen2Config, Qwen3Config

from trainer.base_weights import warm_start
from trainer.engines.vllm_adapter import VllmOptions
from trainer.models import huggingface
from trainer.tasks import TorusTask
from trainer.tasks import vocabulary as vocab

VOCABULARY = 64
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
"""Where these tests have vLLM run."""
MEMORY_SHARE = 0.1
"""Of a GPU: several engines may run beside each other."""


def options(folder: Path, context: int, rows: int = 256) -> VllmOptions:
    """Of an engine on DEVICE."""
    return VllmOptions(str(folder), device=DEVICE, context=context, rows=rows, memory_share=MEMORY_SHARE)


def save_random(config: PretrainedConfig, path: Path, seed: int) -> Path:
    """A random model, saved."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):  # begin at nought, and would not be missed
                parameter.normal_(0, 0.3)
    model.save_pretrained(path)
    return path


def make_folder(path: Path, seed: int, head_size: int = 32) -> Path:
    """A random Qwen3 whose log-probs are far from uniform, saved as any Hugging Face model."""
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=head_size,
        max_position_embeddings=256,
        tie_word_embeddings=False,
        initializer_range=0.3,
    )
    return save_random(config, path, seed)


def make_biased_folder(path: Path, seed: int) -> Path:
    """A random Qwen2, saved: with biases and a tied head, which the Qwen3 above has not."""
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        initializer_range=0.3,
    )
    return save_random(config, path, seed)


def make_base(path: Path, steps: int) -> Path:
    """A Qwen3 that solves a fifth of the torus task's prompts after 400 steps of demonstrations, saved."""
    torch.manual_seed(1)
    config = Qwen3Config(
        vocab_size=vocab.SIZE,
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=256,
        initializer_range=0.1,
        tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
    )
    policy = huggingface.from_config(config)
    warm_start.teach(policy, TorusTask(), steps)
    policy.save_folder(path)
    return path


def read(path: Path) -> PreTrainedModel:
    """The folder's model as transformers runs it."""
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()


@torch.inference_mode()
def plain_logprobs(
    model: PreTrainedModel, prompt: NDArray[np.int64], tokens: NDArray[np.int64], temperature: float
) -> NDArray[np.float32]:
    """Log-probs [T] of the response under one set of weights, from one whole forward."""
    logits = model(torch.from_numpy(np.concatenate([prompt, tokens]))[None], use_cache=False).logits[0]
    distribution = (logits[len(prompt) - 1 : -1] / temperature).log_softmax(-1)
    return distribution.gather(1, torch.from_numpy(tokens)[:, None])[:, 0].numpy()


@torch.inference_mode()
def logprobs_over_swaps(
    models: Sequence[PreTrainedModel], prompt: NDArray[np.int64], tokens: NDArray[np.int64], temperature: float
) -> NDArray[np.float32]:
    """Log-probs [T] when `models[t]` made token t on the keys and values that the earlier ones left behind.

    The step that makes token t runs token t - 1 (the whole prompt for the first), and adds its keys and values.
    """
    cache, said = DynamicCache(), []
    for t, model in enumerate(models):
        given = prompt if t == 0 else tokens[t - 1 : t]
        logits = model(torch.from_numpy(given)[None], past_key_values=cache, use_cache=True).logits[0, -1]
        said.append(float((logits / temperature).log_softmax(-1)[int(tokens[t])]))
    return np.array(said, dtype=np.float32)
