"""Compile the trainer's loops ahead of the first run: `python -m trainer.warm_up` (some twenty seconds, once)."""

from __future__ import annotations

import numpy as np
import torch
from transformers import Qwen3Config

from trainer.engines import TorchEngine
from trainer.engines.base import SamplingConfig
from trainer.models import huggingface
from trainer.types import Prompt, Request


def warm_up() -> None:
    """Sample two tokens from a model of a few hundred parameters and take a gradient of it: every loop runs once."""
    torch.set_num_threads(1)  # loops serve one thread
    sizes = {"vocab_size": 8, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "head_dim": 4}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 16, "pad_token_id": 0}
    policy = huggingface.from_config(Qwen3Config(**sizes, **heads))
    prompts = torch.tensor([[3, 4, 5]])
    policy.full(prompts, torch.tensor([[6, 7]])).sum().backward()  # type: ignore[no-untyped-call]
    engine = TorchEngine(policy, SamplingConfig(max_tokens=2, temperature=1.0, end_tokens=(1,)))
    engine.submit([Request(0, Prompt("", "", np.array([3, 4, 5])), 4, (0,))])
    while engine.busy:
        engine.step()


if __name__ == "__main__":
    warm_up()
