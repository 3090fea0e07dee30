"""One token of many rows in few operations: the same states as the model's own forward, or the model's own forward."""

from __future__ import annotations

import pytest
import torch
import transformers

from tests.trainer.test_compiled import SIZES
from trainer.engines import kv_cache
from trainer.models import huggingface, one_token

USUAL = {
    "norms of queries and keys": transformers.Qwen3Config,
    "biases": transformers.Qwen2Config,
    "neither": transformers.LlamaConfig,
}


def built(config, **changes):
    torch.manual_seed(0)
    policy = huggingface.from_config(config(**SIZES | changes))
    with torch.no_grad():
        for parameter in policy.parameters():  # so that a norm's weight or a bias left out would show
            parameter.add_(0.1 * torch.randn_like(parameter))
    return policy


@torch.inference_mode()
def decoded(policy, steps=6, keep=True):
    """Hidden states of six tokens of 3 prompts x 4 rows, one prompt padded; after three most end and one splits."""
    tokens, mask = torch.randint(1, 32, (3, 7)), torch.ones(3, 7, dtype=torch.bool)
    mask[1, :3] = False
    _, prompt = policy.prefill(tokens, mask)
    cache = kv_cache.make_cache(prompt, 24)
    owners = torch.arange(3).repeat_interleave(4)
    cache.keep(owners, torch.arange(3), owners)
    lengths, hidden = prompt.lengths[owners], []
    for place in range(steps):
        if place == 3 and keep:
            cache.keep(torch.tensor([0, 3, 3, 10]), torch.tensor([0, 2]), torch.tensor([0, 0, 0, 1]))
            lengths = prompt.lengths[[0, 0, 0, 2]]
        places = torch.full_like(lengths, place)
        hidden.append(policy.decode(torch.randint(1, 32, lengths.shape), places, lengths, cache.attends()))
        cache.advance()
    return hidden


def of_both(policy, monkeypatch):
    """Hidden states in few operations, and by the model's own forward."""
    torch.manual_seed(1)
    ours = decoded(policy)
    monkeypatch.setattr(policy, "_one_token", None)
    torch.manual_seed(1)
    return ours, decoded(policy)


@pytest.mark.parametrize("config", USUAL.values(), ids=USUAL)
def test_one_token_gives_the_states_of_the_models_own_forward(monkeypatch, config):
    policy = built(config)
    assert policy._one_token is not None
    for mine, own in zip(*of_both(policy, monkeypatch), strict=True):
        torch.testing.assert_close(mine, own, atol=1e-4, rtol=1e-4)


def test_one_token_follows_every_change_of_the_weights(monkeypatch):
    policy = built(transformers.Qwen2Config)
    decoded(policy)
    changed = {name: (value + 0.1).detach().numpy() for name, value in policy.named_tensors().items()}
    policy.load_tensors(changed)
    for mine, own in zip(*of_both(policy, monkeypatch), strict=True):
        torch.testing.assert_close(mine, own, atol=1e-4, rtol=1e-4)


def test_a_model_that_only_looks_usual_is_found_at_its_first_token_and_keeps_its_own_forward(monkeypatch):
    """A Granite has a Llama's parameters, and multiplies what its layers add."""
    policy = built(transformers.GraniteConfig, residual_multiplier=0.5, attention_multiplier=16**-0.5)
    assert policy._one_token is not None
    torch.manual_seed(1)
    ours = decoded(policy)
    assert policy._one_token is None
    torch.manual_seed(1)
    for mine, own in zip(ours, decoded(policy), strict=True):
        torch.testing.assert_close(mine, own)


@pytest.mark.parametrize("config", [transformers.GlmConfig, transformers.SmolLM3Config, transformers.Olmo2Config])
def test_a_model_with_anything_unaccounted_for_keeps_its_own_forward(config):
    assert built(config)._one_token is None


def test_gradients_are_not_for_one_token(monkeypatch):
    policy = built(transformers.Qwen3Config)
    monkeypatch.setattr(one_token.OneToken, "__call__", lambda *_: pytest.fail("made without a gradient"))
    prompts = torch.randint(1, 32, (2, 5))
    _, prompt = policy.prefill(prompts)
    cache = kv_cache.ByRow(prompt, 8)
    cache.keep(torch.arange(2), torch.arange(2), torch.arange(2))
    policy.decode(
        torch.tensor([3, 4]), torch.zeros(2, dtype=torch.long), prompt.lengths, cache.attends()
    ).sum().backward()
    assert policy.model.get_input_embeddings().weight.grad is not None
