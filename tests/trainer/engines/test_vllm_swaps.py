"""What a swap leaves in vLLM, model by model: the weights that were given, however vLLM holds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PretrainedConfig, Qwen3Config, Qwen3MoeConfig

from tests.trainer.engines.vllm_parts import DEVICE, VOCABULARY, options, plain_logprobs, read, save_random
from trainer.engines.base import Responses, SamplingConfig
from trainer.engines.vllm_adapter import missing
from trainer.engines.vllm_engine import VllmEngine
from trainer.models import huggingface
from trainer.types import Prompt, Request

pytestmark = [pytest.mark.vllm, pytest.mark.skipif(missing() is not None, reason=str(missing()))]

TEMPERATURE, MAX_TOKENS = 0.8, 8
TOLERANCE = 2e-3 if DEVICE == "cpu" else 4e-2  # see test_vllm_engine.py
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}


def of_matrices() -> PretrainedConfig:
    return Qwen3Config(**SIZES, head_dim=32, tie_word_embeddings=False)


def with_experts() -> PretrainedConfig:
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "decoder_sparse_step": 1}
    return Qwen3MoeConfig(**SIZES, **experts, head_dim=32, tie_word_embeddings=False)


# Each kind costs an engine of its own. That of test_vllm_engine.py is of matrices too, with biases and a tied head.
@pytest.mark.parametrize(("kind", "in_place"), [(of_matrices, True), (with_experts, False)])
@pytest.mark.slow  # 20 s each; swaps are in test_vllm_engine.py too
def test_the_weights_of_the_folder_and_then_those_of_a_swap_make_the_tokens(
    kind: Callable[[], PretrainedConfig], in_place: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ways = _ways_taken(monkeypatch)
    old, new = (save_random(kind(), tmp_path / str(seed), seed) for seed in (0, 1))
    engine = VllmEngine(options(old, context=32, rows=16), SamplingConfig(MAX_TOKENS, TEMPERATURE, ()))
    try:
        assert ways == [in_place and DEVICE == "cpu"]
        _agree(_made(engine), old, and_not=new)
        engine.load_weights(1, _weights(new))
        _agree(_made(engine), new, and_not=old)
        engine.load_weights(2, _weights(old))
        _agree(_made(engine), old, and_not=new)
    finally:
        engine.close()


def _ways_taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Fills with whether each engine that starts writes over its weights."""
    from trainer.engines.vllm_adapter import VllmAdapter

    taken, asked = [], VllmAdapter.open_transfer

    async def remembered(adapter: VllmAdapter) -> bool:
        taken.append(await asked(adapter))
        return taken[-1]

    monkeypatch.setattr(VllmAdapter, "open_transfer", remembered)
    return taken


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    """As a learner publishes them."""
    return huggingface.load(folder).named_tensors()


def _made(engine: VllmEngine) -> list[tuple[Prompt, Responses]]:
    prompts = [Prompt("", "", np.random.default_rng(key).integers(0, VOCABULARY, 6)) for key in range(3)]
    engine.submit([Request(key, prompt, 2, (5, key)) for key, prompt in enumerate(prompts)])
    finished: list[Responses] = []
    while engine.busy:
        finished += engine.step()
    return [(prompts[responses.key], responses) for responses in finished]


def _agree(made: list[tuple[Prompt, Responses]], folder: Path, and_not: Path) -> None:
    model, other = read(folder), read(and_not)
    for prompt, responses in made:
        for tokens, said in zip(responses.tokens, responses.logprobs, strict=True):
            np.testing.assert_allclose(said, plain_logprobs(model, prompt.tokens, tokens, TEMPERATURE), atol=TOLERANCE)
            assert np.abs(said - plain_logprobs(other, prompt.tokens, tokens, TEMPERATURE)).max() > 0.1
