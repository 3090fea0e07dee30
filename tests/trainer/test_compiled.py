"""Compiled loops and torch's operations are two ways to the same numbers, and either works without the other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from trainer import compiled
from trainer.engines import TorchEngine, kv_cache
from trainer.engines.base import SamplingConfig
from trainer.engines.rows_innermost import RowsInnermost
from trainer.models import huggingface, norms
from trainer.models.base import PromptCache
from trainer.types import Prompt, Request

SIZES = {
    "vocab_size": 32,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
    "pad_token_id": 0,
}


class PlainRMSNorm(nn.Module):
    """The norm by its formula."""

    def __init__(self, width):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.rand(width) + 0.5), 1e-6

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


@pytest.fixture(params=["compiled", "torch"])
def way(request, monkeypatch):
    """With numba, and as if it were not installed."""
    if request.param == "torch":
        monkeypatch.setattr(compiled, "_numba", lambda: None)
    return request.param


def test_loops_serve_one_thread_float32_and_numba_only(monkeypatch):
    x = torch.zeros(2)
    assert compiled.serve(x)
    assert not compiled.serve(x.bfloat16())
    assert not compiled.serve(x.double())
    with monkeypatch.context() as patch:
        patch.setattr(torch, "get_num_threads", lambda: 2)
        assert not compiled.serve(x)
    monkeypatch.setattr(compiled, "_numba", lambda: None)
    assert not compiled.serve(x)


@pytest.mark.parametrize("shape", [(5, 7, 32), (200, 16), (3, 1, 4, 16), (1, 2)])
def test_a_norm_and_its_gradients_are_those_of_the_formula_in_double_precision(way, shape):
    torch.manual_seed(1)
    x, seen = torch.randn(shape), torch.randn(shape)
    plain = PlainRMSNorm(shape[-1])
    exact_x, exact = x.double().requires_grad_(), PlainRMSNorm(shape[-1]).double()
    exact.weight.data.copy_(plain.weight.data)
    expected = exact(exact_x)
    expected.backward(seen.double())
    norms.write_out_norms(model := nn.Sequential(plain))
    ours_x = x.requires_grad_()
    ours = model(ours_x)
    ours.backward(seen)
    with torch.no_grad():
        torch.testing.assert_close(model(x), ours)
    torch.testing.assert_close(ours.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours_x.grad.double(), exact_x.grad, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(plain.weight.grad.double(), exact.weight.grad, rtol=1e-5, atol=1e-4)


def test_a_norm_of_what_is_not_finite_is_not_finite(way):
    norms.write_out_norms(model := nn.Sequential(PlainRMSNorm(8)))
    x = torch.zeros(3, 8)
    x[1, 2], x[2, 3] = float("nan"), float("inf")
    finite = model(x).isfinite().all(-1)
    assert finite.tolist() == [True, False, False]


def loss_and_gradients(policy):
    """Of a batch of two prompts with three responses each, under the model's whole forward."""
    torch.manual_seed(2)
    prompts, tokens = torch.randint(1, 32, (2, 6)), torch.randint(1, 32, (6, 5))
    _, cache = policy.prefill(prompts)
    hidden = policy.respond(tokens, cache.rows(torch.tensor([0, 0, 0, 1, 1, 1])))
    loss = policy.logits(hidden).log_softmax(-1)[..., 3].sum()
    loss.backward()
    return [loss.detach(), *(parameter.grad for parameter in policy.parameters())]


@pytest.mark.parametrize("config", [transformers.Qwen3Config, transformers.LlamaConfig, transformers.SmolLM3Config])
def test_a_model_has_the_same_loss_and_gradients_with_loops_and_without(monkeypatch, config):
    def built():
        torch.manual_seed(0)
        return huggingface.from_config(config(**SIZES))

    with_loops = loss_and_gradients(built())
    monkeypatch.setattr(compiled, "_numba", lambda: None)
    without = loss_and_gradients(built())
    for ours, theirs in zip(with_loops, without, strict=True):
        assert float((ours - theirs).abs().max()) <= 1e-5 * float(theirs.abs().max())


def replaced(model):
    """Layer numbers of the attention layers that have our forward."""
    return [m.layer_idx for m in model.modules() if "forward" in vars(m) and hasattr(m, "layer_idx")]


def test_only_layers_that_turn_queries_and_keys_in_the_usual_way_get_our_forward():
    huggingface.quiet_transformers()
    assert replaced(huggingface.from_config(transformers.Qwen3Config(**SIZES))) == [0, 1, 2, 3]
    # Every fourth layer of a SmolLM3 has no positions; a GLM turns half of a head, and neighbours instead of halves.
    assert replaced(huggingface.from_config(transformers.SmolLM3Config(**SIZES))) == [0, 1, 2]
    assert replaced(huggingface.from_config(transformers.GlmConfig(**SIZES))) == []


def test_short_responses_are_laid_out_for_loops_only_where_they_serve(way):
    pair = torch.zeros(2, 2, 3, 16), torch.zeros(2, 2, 3, 16)
    prompt = PromptCache((pair,), torch.tensor([3, 3]))
    short, long = kv_cache.make_cache(prompt, 24), kv_cache.make_cache(prompt, 4096)
    assert isinstance(short, RowsInnermost) == (way == "compiled")
    assert isinstance(long, kv_cache.ByRow)


def test_the_engine_samples_the_same_log_probs_with_loops_and_without(monkeypatch):
    def sampled():
        torch.manual_seed(0)
        policy = huggingface.from_config(transformers.Qwen3Config(**SIZES))
        engine = TorchEngine(policy, SamplingConfig(max_tokens=12, temperature=1.0, end_tokens=(1,)))
        engine.submit([Request(i, Prompt("", "", np.arange(5, 8 + i)), 5, (3, i)) for i in range(4)])
        finished = []
        while engine.busy:
            finished += engine.step()
        return sorted(finished, key=lambda responses: responses.key)

    with_loops = sampled()
    monkeypatch.setattr(compiled, "_numba", lambda: None)
    for ours, theirs in zip(with_loops, sampled(), strict=True):
        assert (ours.tokens == theirs.tokens).all()
        np.testing.assert_allclose(ours.logprobs, theirs.logprobs, atol=1e-4)


def test_where_nothing_compiled_can_be_kept_a_loop_is_compiled_all_the_same(monkeypatch):
    pytest.importorskip("numba.core.caching")
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])  # as where no folder may be written to

    def doubled(x):
        x *= 2.0

    numbers = torch.ones(3).numpy()
    compiled.compiled(doubled)(numbers)
    assert numbers.tolist() == [2.0, 2.0, 2.0]
